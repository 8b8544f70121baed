"""A component as a suite writes it: `NAME` or `{NAME: {parameters}}`."""

from __future__ import annotations

import copy
import dataclasses
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar, cast

from pydantic import PlainValidator, ValidationError, ValidationInfo, WithJsonSchema

from msda_bench.api import Component, Metric
from msda_bench.component.base import before_added, path_parameters
from msda_bench.errors import PluginError, message_of
from msda_bench.plugins import Entry, Registry
from msda_bench.suite.issues import Loc, ValidationIssue, dotted, faults, refusal, shown
from msda_bench.suite.plan import MetricInfo
from msda_bench.suite.run_spec import ComponentSpec

C = TypeVar("C", bound=Component)


@dataclass(frozen=True)
class Configured(Generic[C]):
    """An installed component with checked parameters: all of them, defaults included, as plain JSON values.

    `given` names those that the suite gives.
    """

    entry: Entry
    component: C
    params: dict[str, Any]
    given: frozenset[str] = field(default=frozenset(), compare=False)

    @property
    def name(self) -> str:
        """The component's name."""
        return self.entry.name

    @property
    def ref(self) -> ComponentSpec:
        """The reference that becomes part of a cell."""
        made, held = self.component, getattr(self.component, "held", None)
        own = made.identity(), made.file_paths(), held
        return ComponentSpec(self.entry.kind, self.name, made.version, self.entry.distribution, *own)

    def holding(self, held: Any) -> Configured[C]:
        """The same with an object of this Python session, which its parameters describe."""
        return replace(self, component=_holding(self.component, held))


@dataclass(frozen=True)
class Context:
    """The context of validation; `sound` holds the parts of an experiment that have been found valid so far.

    A suite names other files relative to its own `folder`; none may lie outside `top`, the folder of the suite that the
    user named.
    """

    registry: Registry
    folder: Path = Path()
    top: Path = Path()
    sound: dict[str, Any] = field(default_factory=dict)


def of_kind(kind: str) -> PlainValidator:
    """Marks a field of a suite for a component of a kind; after validation it holds the `Configured` one."""

    def validate(raw: Any, info: ValidationInfo) -> Configured[Any]:
        context = context_of(info)
        return choose(context.registry, kind, raw, context.folder)

    # A placeholder, which `suite_schema` replaces by the installed components.
    written = Annotated[Any, WithJsonSchema({"x-component": kind})]
    return PlainValidator(validate, json_schema_input_type=written)


def context_of(info: ValidationInfo) -> Context:
    """The context that the loader passes to pydantic."""
    return cast("Context", info.context)


def choose(registry: Registry, kind: str, raw: Any, folder: Path = Path()) -> Configured[Any]:
    """The component that a suite in the folder names; a pydantic.ValidationError has locations that start at `raw`."""
    name, params, loc = _split(kind, raw)
    try:
        entry = registry.entry(kind, name)
        files = {one: params[one] for one in path_parameters(entry.cls) & params.keys()}
        given = {one: path for one, path in files.items() if isinstance(path, str) and path}
        placed = {one: os.path.abspath(folder / path) for one, path in given.items()}  # noqa: PTH100 - keeps links
        return _create(entry, {**params, **placed})
    except ValidationError as error:
        raise refusal(*(fault._replace(loc=loc + fault.loc) for fault in _faults(error, entry))) from None
    except PluginError as error:
        raise refusal(ValidationIssue(loc, message_of(error, 1000), "key" if loc else "value")) from None


def make(registry: Registry, kind: str, name: str, params: Mapping[str, Any]) -> Configured[Any]:
    """A component by name, with parameters as plain JSON values; a PluginError if there is none or they are invalid."""
    entry = registry.entry(kind, name)
    try:
        return _create(entry, params)
    except ValidationError as error:
        wrong = "; ".join(f"{dotted(fault.loc)}: {fault.what}" for fault in _faults(error, entry))
        raise PluginError(f"{kind} {name!r}: {wrong}") from None


def make_planned(registry: Registry, ref: ComponentSpec) -> Component:
    """The component of a cell's reference, exactly as planned; a PluginError if it has changed."""
    entry = registry.entry(ref.kind, ref.name)
    if entry.distribution != ref.distribution:
        now = f"from {ref.distribution}, but {entry.origin} provides it now; install {ref.distribution} instead"
        raise PluginError(f"{ref.kind} {ref.name!r} was planned {now}")
    if entry.cls.version != ref.version:
        now = f"at version {ref.version}, but {entry.origin} provides version {entry.cls.version}"
        raise PluginError(f"{ref.kind} {ref.name!r} was planned {now}; run the suite again to update the plan")
    made = cast("Component", make(registry, ref.kind, ref.name, before_added(entry.cls) | ref.given).component)
    return made if ref.held is None else _holding(made, ref.held)


def _holding(component: C, held: Any) -> C:
    holder = copy.copy(component)
    object.__setattr__(holder, "held", held)  # components are frozen
    return holder


def measure_of(metric: Configured[Metric]) -> MetricInfo:
    """The description of a metric for tables."""
    made = metric.component
    return MetricInfo(metric.name, made.label, made.higher_is_better, made.percent, made.needs_outputs, metric.params)


def with_param(configured: Configured[Any], param: str, value: Any) -> Configured[Any]:
    """The component with another value of one parameter; a pydantic.ValidationError or PluginError if it is refused."""
    changed: Configured[Any] = _create(configured.entry, {**configured.params, param: value})
    held = getattr(configured.component, "held", None)
    return changed if held is None else changed.holding(held)


def _create(entry: Entry, params: Mapping[str, Any]) -> Configured[Any]:
    with entry.plugin_errors("cannot be made", ValidationError):
        component = entry.create(params)
        return Configured(entry, component, component.params(), frozenset(params))


def _faults(error: ValidationError, entry: Entry) -> Iterator[ValidationIssue]:
    fields = [field.name for field in dataclasses.fields(cast("Any", entry.cls))]
    return faults(error, f"parameter of {entry.name}", fields)


def _split(kind: str, raw: Any) -> tuple[str, Mapping[str, Any], Loc]:
    if isinstance(raw, str):
        return raw, {}, ()
    if not isinstance(raw, dict):
        kind_of = f"an {kind}" if kind.startswith("a") else f"a {kind}"
        raise refusal(ValidationIssue((), f"must be {kind_of}, as name or {{name: {{parameters}}}}, not {shown(raw)}"))
    if len(raw) != 1:
        raise refusal(ValidationIssue((), f"must name one {kind}, not {len(raw)}; write {{name: {{parameters}}}}"))
    ((name, params),) = raw.items()
    if params is not None and not isinstance(params, dict):
        raise refusal(ValidationIssue((name,), f"must be a mapping of parameters, not {shown(params)}"))
    return name, params or {}, (name,)
