"""From a cell's reference back to the component it names."""

from __future__ import annotations

from msda_bench.api import Component
from msda_bench.errors import PluginError
from msda_bench.plugins import Registry
from msda_bench.suite.cell import Ref
from msda_bench.suite.choice import make


def build(registry: Registry, ref: Ref) -> Component:
    """The component of a reference, exactly as it was when the cell was planned.

    Raises:
        PluginError: it is not installed, is of another version or distribution, or refuses the parameters.
    """
    entry = registry.entry(ref.kind, ref.name)
    if entry.distribution != ref.distribution:
        raise PluginError(
            f"{ref.kind} {ref.name!r} was planned from {ref.distribution}, but {entry.origin} brings it now; "
            f"install {ref.distribution} in its place"
        )
    if entry.cls.version != ref.version:
        raise PluginError(
            f"{ref.kind} {ref.name!r} was planned at version {ref.version}, but {entry.origin} brings version "
            f"{entry.cls.version}; run the suite again to plan it anew"
        )
    component: Component = make(registry, ref.kind, ref.name, ref.params).component
    return component
