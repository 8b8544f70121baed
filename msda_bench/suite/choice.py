"""A component as a suite writes it: `NAME` or `{NAME: {parameters}}`."""

from __future__ import annotations

import copy
import dataclasses
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar, cast

from pydantic import PlainValidator, ValidationError, ValidationInfo, WithJsonSchema

from msda_bench.api import Component
from msda_bench.component.base import before_added, path_parameters
from msda_bench.component.task import MetricInfo
from msda_bench.errors import PluginError, message_of
from msda_bench.plugins import Entry, Registry
from msda_bench.suite.issues import Loc, ValidationIssue, dotted, issues_of, refusal, refused, shown_value
from msda_bench.suite.run_spec import ComponentSpec

if TYPE_CHECKING:
    from msda_bench.api import Metric

C = TypeVar("C", bound=Component)


@dataclass(frozen=True)
class Configured(Generic[C]):
    """An installed component with checked parameters: all of them, defaults included, as plain JSON values.

    `given` has the names of the parameters that the suite sets.
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
    def spec(self) -> ComponentSpec:
        """The component as part of a run."""
        made = self.component
        return ComponentSpec(
            kind=self.entry.kind,
            name=self.name,
            version=made.version,
            distribution=self.entry.distribution,
            params=made.identity(),
            file_paths=made.file_paths(),
            held=getattr(made, "held", None),
        )

    def holding(self, held: Any) -> Configured[C]:
        """The same component with an object of this Python session, which its parameters describe."""
        return replace(self, component=_holding(self.component, held))


@dataclass(frozen=True)
class Context:
    """The context of validation; `sound` contains the parts of an experiment that are valid so far.

    A suite names other files relative to its own `folder`; none may lie outside `top`, the folder of the suite that the
    user named.
    """

    registry: Registry
    folder: Path = Path()
    top: Path = Path()
    sound: dict[str, Any] = field(default_factory=dict)


def of_kind(kind: str) -> PlainValidator:
    """Marks a field of a suite as a component of this kind; validation turns it into a `Configured` one."""

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
        given = dict(params)
        for param in path_parameters(entry.cls) & params.keys():
            path = params[param]
            if path and isinstance(path, str):
                given[param] = os.path.abspath(folder / path)  # noqa: PTH100 - keeps links
        return _create(entry, given)
    except ValidationError as error:
        raise refusal(*(issue._replace(loc=loc + issue.loc) for issue in _issues(error, entry))) from None
    except PluginError as error:
        raise refused(message_of(error, 1000), loc, "key" if loc else "value") from None


def make(registry: Registry, kind: str, name: str, params: Mapping[str, Any]) -> Configured[Any]:
    """A component by name, with parameters as plain JSON values; a PluginError if there is none or they are invalid."""
    entry = registry.entry(kind, name)
    try:
        return _create(entry, params)
    except ValidationError as error:
        wrong = "; ".join(f"{dotted(issue.loc)}: {issue.what}" for issue in _issues(error, entry))
        raise PluginError(f"{kind} {name!r}: {wrong}") from None


def make_planned(registry: Registry, spec: ComponentSpec) -> Component:
    """The component of a run, exactly as planned; a PluginError if it has changed."""
    entry = registry.entry(spec.kind, spec.name)
    if entry.distribution != spec.distribution:
        now = f"from {spec.distribution}, but {entry.origin} provides it now; install {spec.distribution} instead"
        raise PluginError(f"{spec.kind} {spec.name!r} was planned {now}")
    if entry.cls.version != spec.version:
        now = f"at version {spec.version}, but {entry.origin} provides version {entry.cls.version}"
        raise PluginError(f"{spec.kind} {spec.name!r} was planned {now}; run the suite again to update the plan")
    made = cast("Component", make(registry, spec.kind, spec.name, before_added(entry.cls) | spec.given).component)
    return made if spec.held is None else _holding(made, spec.held)


def _holding(component: C, held: Any) -> C:
    holder = copy.copy(component)
    object.__setattr__(holder, "held", held)  # components are frozen
    return holder


def metric_info(metric: Configured[Metric]) -> MetricInfo:
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


def _issues(error: ValidationError, entry: Entry) -> Iterator[ValidationIssue]:
    params = [param.name for param in dataclasses.fields(cast("Any", entry.cls))]
    return issues_of(error, f"parameter of {entry.name}", params)


def _split(kind: str, raw: Any) -> tuple[str, Mapping[str, Any], Loc]:
    if isinstance(raw, str):
        return raw, {}, ()
    if not isinstance(raw, dict):
        article = "an" if kind.startswith("a") else "a"
        what = f"must be {article} {kind}, as name or {{name: {{parameters}}}}, not {shown_value(raw)}"
        raise refused(what)
    if len(raw) != 1:
        raise refused(f"must name one {kind}, not {len(raw)}; write {{name: {{parameters}}}}")
    ((name, params),) = raw.items()
    if params is not None and not isinstance(params, dict):
        raise refused(f"must be a mapping of parameters, not {shown_value(params)}", (name,))
    return name, params or {}, (name,)
