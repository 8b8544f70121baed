"""A component as a suite chooses it: `NAME` or `{NAME: {parameters}}`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Generic, TypeAlias, TypeVar, cast

from pydantic import PlainValidator, ValidationError, ValidationInfo, WithJsonSchema

from msda_bench.api import Aggregator, Backbone, Component, Dataset, Discrepancy, Scheme, Validator
from msda_bench.errors import PluginError, message_of, pass_interrupt
from msda_bench.plugins import Entry, Registry
from msda_bench.suite.cell import Ref
from msda_bench.suite.faults import Fault, faults, refusal
from msda_bench.suite.mistakes import Loc, dotted, shown

C = TypeVar("C", bound=Component)


@dataclass(frozen=True)
class Choice(Generic[C]):
    """An installed component with checked parameters.

    Attributes:
        entry: its class and distribution.
        component: the instance.
        params: every parameter, defaults included, as plain JSON values.
    """

    entry: Entry
    component: C
    params: dict[str, Any]

    @property
    def name(self) -> str:
        """The component's name."""
        return self.entry.name

    @property
    def ref(self) -> Ref:
        """What goes into a cell."""
        params = self.component.identity()
        return Ref(self.entry.kind, self.name, self.component.version, self.entry.distribution, params)


@dataclass(frozen=True)
class Context:
    """What validation needs and finds.

    Attributes:
        registry: the installed components.
        folder: of the suite's file, which names other files relative to it.
        top: folder of the suite that the user named; no file of a suite lies outside it.
        sound: the parts of an experiment that are sound so far.
    """

    registry: Registry
    folder: Path = Path()
    top: Path = Path()
    sound: dict[str, Any] = field(default_factory=dict)


def context_of(info: ValidationInfo) -> Context:
    """The context that the loader passes to pydantic."""
    return cast("Context", info.context)


def choose(registry: Registry, kind: str, raw: Any) -> Choice[Any]:
    """The component that a suite names.

    Raises:
        pydantic.ValidationError: no such component, or a parameter is wrong; locations start at `raw`.
    """
    name, params, loc = _split(kind, raw)
    try:
        return _create(registry.entry(kind, name), params)
    except ValidationError as error:
        raise refusal([fault._replace(loc=loc + fault.loc) for fault in _faults(error, registry, kind, name)]) from None
    except PluginError as error:
        raise refusal([Fault(loc, message_of(error, 1000), "key" if loc else "value")]) from None


def make(registry: Registry, kind: str, name: str, params: Mapping[str, Any]) -> Choice[Any]:
    """The same, for a component that no suite file names.

    Raises:
        PluginError: no such component, or a parameter is wrong.
    """
    try:
        return _create(registry.entry(kind, name), params)
    except ValidationError as error:
        wrong = "; ".join(f"{dotted(fault.loc)}: {fault.what}" for fault in _faults(error, registry, kind, name))
        raise PluginError(f"{kind} {name!r}: {wrong}") from None


def changed(choice: Choice[Any], param: str, value: Any) -> Choice[Any]:
    """The same component with another value of a parameter.

    Raises:
        pydantic.ValidationError: the value is refused.
        PluginError: the component cannot be made with it.
    """
    return _create(choice.entry, {**choice.params, param: value})


def _create(entry: Entry, params: Mapping[str, Any]) -> Choice[Any]:
    try:
        component = entry.create(params)
        return Choice(entry, component, component.params())
    except ValidationError:
        raise
    except BaseException as error:  # a stranger's checks may raise anything
        pass_interrupt(error)
        text = f"{entry.kind} {entry.name!r} of {entry.origin} cannot be made: {entry.fault(error)}"
        raise PluginError(text) from error


def _faults(error: ValidationError, registry: Registry, kind: str, name: str) -> list[Fault]:
    fields = [field.name for field in dataclasses.fields(cast("Any", registry.entry(kind, name).cls))]
    return list(faults(error, lambda _: (f"parameter of {name}", fields)))


def _split(kind: str, raw: Any) -> tuple[str, Mapping[str, Any], Loc]:
    if isinstance(raw, str):
        return raw, {}, ()
    if not isinstance(raw, dict):
        kind_of = f"an {kind}" if kind.startswith("a") else f"a {kind}"
        raise refusal([Fault((), f"must be {kind_of}, as name or {{name: {{parameters}}}}, not {shown(raw)}")])
    if len(raw) != 1:
        raise refusal([Fault((), f"must name one {kind}, not {len(raw)}; write {{name: {{parameters}}}}")])
    ((name, params),) = raw.items()
    if params is not None and not isinstance(params, dict):
        raise refusal([Fault((name,), f"must be a mapping of parameters, not {shown(params)}")])
    return name, params or {}, (name,)


def _validator(kind: str) -> Callable[[Any, ValidationInfo], Choice[Any]]:
    def validate(raw: Any, info: ValidationInfo) -> Choice[Any]:
        return choose(context_of(info).registry, kind, raw)

    return validate


def _marker(kind: str) -> WithJsonSchema:
    return WithJsonSchema({"x-component": kind})


DatasetChoice: TypeAlias = Annotated[Choice[Dataset], PlainValidator(_validator("dataset")), _marker("dataset")]
BackboneChoice: TypeAlias = Annotated[Choice[Backbone], PlainValidator(_validator("backbone")), _marker("backbone")]
SchemeChoice: TypeAlias = Annotated[Choice[Scheme], PlainValidator(_validator("scheme")), _marker("scheme")]
DiscrepancyChoice: TypeAlias = Annotated[
    Choice[Discrepancy], PlainValidator(_validator("discrepancy")), _marker("discrepancy")
]
AggregatorChoice: TypeAlias = Annotated[
    Choice[Aggregator], PlainValidator(_validator("aggregator")), _marker("aggregator")
]
ValidatorChoice: TypeAlias = Annotated[Choice[Validator], PlainValidator(_validator("validator")), _marker("validator")]
