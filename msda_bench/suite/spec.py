"""What a suite file may say: strict models, validated with the installed components at hand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal, get_args, get_origin

from pydantic import (
    Field,
    PlainValidator,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from msda_bench.api import Count, NonNegative
from msda_bench.suite.choice import (
    AggregatorChoice,
    BackboneChoice,
    Choice,
    DatasetChoice,
    DiscrepancyChoice,
    SchemeChoice,
    ValidatorChoice,
    choose,
    context_of,
)
from msda_bench.suite.faults import PLAIN_NAME, Fault, refusal
from msda_bench.suite.mistakes import Loc, shown
from msda_bench.suite.optimizers import Optimizer, Settings
from msda_bench.suite.published.choice import PublishedChoice
from msda_bench.suite.search_space import SpaceDimension
from msda_bench.suite.seeds import MAX_COUNT, seeds

NO_DISCREPANCY = "none"
DEFAULT_SCHEME = "adapt"
POOLED = "pooled"
DEFAULT_AGGREGATOR = "uniform"

Name = Annotated[str, Field(pattern=PLAIN_NAME)]
# Not Literal[1], which takes `true` for 1; the loader has refused newer ones by then.
Version = Annotated[int, Field(ge=1, le=1)]
Labels = Annotated[int, Field(ge=0)]
Budget = Annotated[int, Field(ge=1, le=1000)]
Significance = Annotated[float, Field(gt=0, lt=1)]


def _domains(raw: Any) -> tuple[str, ...] | None:
    if raw == "all":
        return None
    if not isinstance(raw, list) or not raw:
        raise refusal([Fault((), f"must be 'all' or a list of at least one domain, not {shown(raw)}")])
    found: list[Fault] = []
    named: set[str] = set()
    for index, name in enumerate(raw):
        if not isinstance(name, str):
            found.append(Fault((index,), f"must be the name of a domain, not {shown(name)}"))
        elif name in named:
            found.append(Fault((index,), f"{shown(name)} is named twice"))
        else:
            named.add(name)
    if found:
        raise refusal(found)
    return tuple(raw)


_SEEDS_SCHEMA = {
    "anyOf": [
        {"type": "integer", "minimum": 1, "maximum": MAX_COUNT},
        {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1, "uniqueItems": True},
        {"type": "string", "pattern": "^[0-9]+-[0-9]+$"},
    ]
}
_DOMAINS_SCHEMA = {
    "anyOf": [{"const": "all"}, {"type": "array", "items": {"type": "string"}, "minItems": 1, "uniqueItems": True}]
}
Seeds = Annotated[tuple[int, ...], PlainValidator(seeds), WithJsonSchema(_SEEDS_SCHEMA)]
Domains = Annotated[tuple[str, ...] | None, PlainValidator(_domains), WithJsonSchema(_DOMAINS_SCHEMA)]


def _batch(raw: Any) -> int | Literal["all"]:
    if raw == "all":
        return "all"
    if type(raw) is int and raw >= 1:
        return raw
    raise refusal([Fault((), f"must be at least 1, or 'all', not {shown(raw)}")])


_BATCH_SCHEMA = {"anyOf": [{"type": "integer", "minimum": 1}, {"const": "all"}]}
BatchSize = Annotated[int | Literal["all"], PlainValidator(_batch), WithJsonSchema(_BATCH_SCHEMA)]


class Protocol(Settings):
    """How long, on how many examples and with which optimiser every method trains."""

    epochs: Count
    batch: BatchSize
    optimizer: Optimizer
    steps: Count | None = None
    precision: Literal["float32", "tf32", "bf16"] = "float32"


class Comparison(Settings):
    """How methods are compared.

    `baseline` is what the others are to gain over; if not given, the only method that pools and adapts to nothing.
    `against` makes the comparisons of every method with that one the family of tests that tables go by; if not given,
    these are all pairs of up to six methods, and the comparisons with the baseline beyond.
    """

    test: Literal["wilcoxon"] = "wilcoxon"
    alpha: Significance = 0.05
    baseline: Name | None = None
    against: Name | None = None


class SplitSpec(Settings):
    """Every source in finer domains, as many of each."""

    noun: ClassVar[str] = "key of split_sources"
    clusters: Count
    by: Literal["kmeans", "chance"] = "kmeans"


class SelectSpec(Settings):
    """How each method's settings are selected among candidates, as many for every method."""

    noun: ClassVar[str] = "key of select"
    how: Literal["grid", "random"]
    budget: Budget
    by: Name
    space: dict[str, SpaceDimension] = Field(default_factory=dict)
    leave_one_source_out: bool = False


class MethodSpec(Settings):
    """A row of the table. After validation the discrepancy and the aggregator are None where the scheme takes none.

    What it says of `optimizer`, `split_sources`, `labelled_target` and a path of `search` comes before the suite's.
    """

    scheme: SchemeChoice = Field(default=DEFAULT_SCHEME, validate_default=True)
    discrepancy: DiscrepancyChoice | None = None
    aggregator: AggregatorChoice | None = None
    mu: NonNegative = 0.0
    reference: bool = False
    optimizer: Optimizer | None = None
    split_sources: SplitSpec | None = None
    labelled_target: Labels | None = None
    search: dict[str, SpaceDimension] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _complete(self, info: ValidationInfo) -> MethodSpec:
        found = [*self._unsuited(), *self._unweighed()]
        if found:
            raise refusal(found)
        filled: dict[str, Choice[Any]] = {}
        if self.scheme.component.uses_discrepancy:
            registry = context_of(info).registry
            for name, default in (("discrepancy", NO_DISCREPANCY), ("aggregator", DEFAULT_AGGREGATOR)):
                filled[name] = getattr(self, name) or choose(registry, name, default)
        return self.model_copy(update=filled)

    def _unsuited(self) -> Iterator[Fault]:
        scheme = self.scheme.component
        if scheme.needs_target_labels and not self.reference:
            # What has seen the target's labels must never be ranked.
            yield Fault(("scheme",), f"{self.scheme.name} asks for target labels; add reference: true")
        if scheme.needs_target_labels and self.labelled_target is not None:
            yield Fault(("labelled_target",), f"{self.scheme.name} sees all target labels; remove it", "key")
        for name in ("aggregator", "discrepancy"):
            if not scheme.uses_discrepancy and getattr(self, name) is not None:
                yield Fault((name,), f"scheme {self.scheme.name!r} takes none; remove it", "key")

    def _unweighed(self) -> Iterator[Fault]:
        scheme, given = self.scheme.component, "mu" in self.model_fields_set
        adapts = self.discrepancy is not None and self.discrepancy.name != NO_DISCREPANCY
        if not scheme.uses_mu:
            if given:
                yield Fault(("mu",), f"scheme {self.scheme.name!r} takes none; remove it", "key")
        elif scheme.uses_discrepancy and not adapts:
            if self.mu > 0:
                yield Fault(("mu",), f"weighs no discrepancy; name one, or remove mu (it is {self.mu:g})")
        elif not given:
            # What weighs nothing would quietly adapt nothing.
            part = "discrepancy" if scheme.uses_discrepancy else "scheme"
            yield Fault((part,), "needs its weight; add mu, such as mu: 0.01")


class ExperimentFile(Settings):
    """A suite of one experiment: one dataset with one protocol, one table."""

    schema_: Version = Field(alias="schema")
    name: Name
    description: str = ""
    dataset: DatasetChoice
    targets: Domains = None
    sources: Domains = None
    seeds: Seeds
    backbone: BackboneChoice
    training: Protocol
    methods: Annotated[dict[Name, MethodSpec], Field(min_length=1)]
    split_sources: SplitSpec | None = None
    labelled_target: Labels = 0
    # Validated even where it is not given, so that an absent one is told from one with mistakes.
    select: SelectSpec | None = Field(default=None, validate_default=True)
    validators: list[ValidatorChoice] | None = None
    compare: Comparison = Comparison()
    fetch: bool = False
    notes: list[str] = Field(default_factory=list)
    published: PublishedChoice = None

    @field_validator("*", mode="wrap")
    @classmethod
    def _keep(cls, raw: Any, handler: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
        # Kept apart, so that parts that depend on each other are checked even when a third is wrong.
        value = handler(raw)
        context_of(info).sound[str(info.field_name)] = value
        return value


class IncludeFile(Settings):
    """A suite that joins others; each keeps its own name as an experiment."""

    schema_: Version = Field(alias="schema")
    name: Name
    description: str = ""
    include: Annotated[list[str], Field(min_length=1)]
    fetch: bool = False


def keys_at(model: type[Settings], loc: Loc) -> tuple[str, list[str]]:
    """What the keys of the mapping at a location are called, and which there are."""
    kind: Any = model
    for part in loc:
        kind = _below(kind, part)
    return (kind.noun, list(_fields(kind))) if _is_model(kind) else ("key", [])


def _below(kind: Any, part: str | int) -> Any:
    if _is_model(kind):
        annotation = _fields(kind).get(str(part))
        if get_origin(annotation) is dict:
            return annotation
        return next((choice for choice in get_args(annotation) if _is_model(choice)), annotation)
    return get_args(kind)[1] if get_origin(kind) is dict else None


def _fields(model: type[Settings]) -> dict[str, Any]:
    return {field.alias or name: field.annotation for name, field in model.model_fields.items()}


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Settings)
