"""Loads plugins from an entry-point group, one at a time, so that a broken one stops no other."""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msda_bench import api, loading
from msda_bench.blame import blaming, package
from msda_bench.errors import BenchError
from msda_bench.marker import PROJECT
from msda_bench.plugins.process_state import restored
from msda_bench.plugins.registry import BrokenPlugin, Entry, Registry, read_attributes

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_HOOKS: dict[str, type[api.Component]] = {
    "msda_datasets": api.Dataset,
    "msda_backbones": api.Backbone,
    "msda_discrepancies": api.Discrepancy,
    "msda_aggregators": api.Aggregator,
    "msda_schemes": api.Scheme,
    "msda_validators": api.Validator,
    "msda_metrics": api.Metric,
}


def discover(
    entry_points: Iterable[importlib.metadata.EntryPoint] | None = None,
    group: str = PROJECT,
    hooks: Mapping[str, type[api.Component]] = _HOOKS,
) -> Registry:
    """All installed components, and every plugin that could not be used with the reason.

    Args:
        entry_points: replace the installed entry points in tests.
        group: of entry points.
        hooks: the names of the group's hooks, and the base of the classes that each returns.
    """
    entries: list[Entry] = []
    broken: list[BrokenPlugin] = []
    changed: list[str] = []
    for point, name, version in loading.entry_points(group, entry_points):
        what = f"entry point {point.name!r} ({point.value})"
        with restored() as settings:
            for part in _classes(point, what, hooks):
                if isinstance(part, str):
                    broken.append(BrokenPlugin(name, f"{name} {version}: {part}"))
                else:
                    entries.append(Entry(part.kind, part, name, version))
        if settings:
            deed = f"{what} changed {' and '.join(settings)}"
            changed.append(f"{name} {version}: {deed}: it was put back, since every run of the process shares it")
    return Registry(entries, broken, changed)


def _classes(
    point: importlib.metadata.EntryPoint, what: str, hooks: Mapping[str, type[api.Component]]
) -> Iterator[type[api.Component] | str]:
    """The plugin's components, and a line for each part of it that cannot be used."""
    packages = {package(point.value)}
    for part in loading.listed(point, what, hooks):
        if isinstance(part, str):
            yield part
            continue
        hook, cls = part
        why = _unusable(cls, hooks[hook], packages)
        yield f"hook {hook}: {_name(cls)} {why}" if why else cls


def _name(cls: object) -> str:
    return cls.__name__ if isinstance(cls, type) else cls if isinstance(cls, str) else f"a {type(cls).__name__}"


def _unusable(cls: Any, base: type[api.Component], packages: set[str]) -> str | None:
    try:
        with blaming(packages, "cannot be inspected"):
            return _fault(cls, base)
    except BenchError as fault:
        return str(fault)


def _door(base: type[api.Component]) -> str:
    return "msda_bench.api" if hasattr(api, base.__name__) else "msda_bench.executors"


def _fault(cls: Any, base: type[api.Component]) -> str | None:
    if not (isinstance(cls, type) and issubclass(cls, base)):
        return f"is not a subclass of {_door(base)}.{base.__name__}"
    name = getattr(cls, "name", None)
    if not (isinstance(name, str) and NAME.fullmatch(name)):
        return f"needs a `name` of letters, digits, '_', '.' and '-', at most 64, not {name!r}"
    if "__pydantic_validator__" not in vars(cls):
        return "is not decorated with @component"
    if type(cls.version) is not int or cls.version < 1:
        return f"needs a whole `version` of at least 1, not {cls.version!r}"
    missing = sorted(getattr(cls, "__abstractmethods__", ()))
    if missing:
        return f"does not define {', '.join(missing)}"
    read_attributes(cls)
    return None if isinstance(cls.description(), str) else "needs a `description` that returns text"
