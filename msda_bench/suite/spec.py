"""The contents of a suite file: strict models, validated with the installed components."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    Field,
    PlainValidator,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from msda_bench.api import (
    Aggregator,
    Backbone,
    Dataset,
    Discrepancy,
    Metric,
    NonNegative,
    Predictor,
    SchemeBase,
    Validator,
)
from msda_bench.suite.choice import Configured, choose, context_of, of_kind
from msda_bench.suite.issues import Issues, ValidationIssue, hint, issues_of, refusal, refuse_any, refused, shown_value
from msda_bench.suite.own_estimator import as_scheme
from msda_bench.suite.plan import Comparison, Name
from msda_bench.suite.protocol import NonEmpty, Optimizer, Splitting, SuitePart, TrainingConfig, UpdateRule
from msda_bench.suite.published_spec import PublishedSpec
from msda_bench.suite.subset import meant_span, span

MAX_SEED = 2**31 - 1
MAX_COUNT = 10_000
NO_DISCREPANCY = "none"
POOLED = "pooled"
DEFAULT_AGGREGATOR = "uniform"

# Not Literal[1], which accepts `true` for 1.
Version = Annotated[int, Field(ge=1, le=1)]
Labels = Annotated[int, Field(ge=0)]


def seeds(raw: Any) -> tuple[int, ...]:
    """A count n (0 to n - 1), a list of numbers, or a span such as "0-4"; refuses anything else."""
    if isinstance(raw, list):
        return _listed_seeds(raw)
    text = raw if isinstance(raw, str) else ""
    numbers = span(text)
    if type(raw) is int:
        if raw < 1:
            raise refused(f"must be a count of at least 1, not {raw}; for one seed write [{max(raw, 0)}]")
        numbers = range(raw)
    if numbers is None:
        meant = meant_span(text)
        close = f" (did you mean {shown_value(meant)}?)" if meant else ""
        raise refused(f"must be a count, a list such as [0, 3] or a span such as '0-4', not {shown_value(raw)}{close}")
    if len(numbers) > MAX_COUNT or numbers[-1] > MAX_SEED:
        raise refused(f"must be at most {MAX_COUNT} seeds below 2**31, not {shown_value(raw)}")
    return tuple(numbers)


def _listed_seeds(raw: list[Any]) -> tuple[int, ...]:
    if not raw:
        raise refused("must have at least one seed")

    def usable(item: Any) -> bool:
        return type(item) is int and 0 <= item <= MAX_SEED

    return _each_once(raw, usable, "must be a whole number from 0 to 2**31 - 1", "seed ")


def _domains(raw: Any) -> tuple[str, ...] | None:
    if raw == "all":
        return None
    if not isinstance(raw, list) or not raw:
        raise refused(f"must be 'all' or a list of at least one domain, not {shown_value(raw)}")
    return _each_once(raw, lambda item: isinstance(item, str), "must be the name of a domain")


def _each_once(raw: list[Any], usable: Callable[[Any], bool], wanted: str, noun: str = "") -> tuple[Any, ...]:
    """The items as a tuple; refuses unusable and repeated ones."""
    sound: set[Any] = set()
    issues: list[ValidationIssue] = []
    for index, item in enumerate(raw):
        if not usable(item):
            issues.append(ValidationIssue((index,), f"{wanted}, not {shown_value(item)}"))
        elif item in sound:
            issues.append(ValidationIssue((index,), f"{noun}{shown_value(item)} is named twice"))
        else:
            sound.add(item)
    refuse_any(issues)
    return tuple(raw)


def _values(raw: Any) -> tuple[Any, ...]:
    """Reads `[value, ...]`."""
    if not isinstance(raw, list):
        raise refused(f"must be a list of values such as [0.001, 0.1], not {shown_value(raw)}")
    if not raw:
        raise refused("must have at least one value")
    issues: list[ValidationIssue] = []
    for index, value in enumerate(raw):
        if value in raw[:index]:
            issues.append(ValidationIssue((index,), f"{shown_value(value)} is listed twice"))
        if isinstance(value, dict) and len(value) != 1:  # one names a choice with its parameters
            issues.append(ValidationIssue((index,), f"must be a plain value, not {shown_value(value)}"))
    refuse_any(issues)
    return tuple(raw)


def _list_of(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": item, "minItems": 1, "uniqueItems": True}


_COUNT = {"type": "integer", "minimum": 1}
_SEEDS = [
    _COUNT | {"maximum": MAX_COUNT},
    _list_of({"type": "integer", "minimum": 0}),
    {"type": "string", "pattern": "^[0-9]+-[0-9]+$"},
]
_DOMAINS = [{"const": "all"}, _list_of({"type": "string"})]
Seeds = Annotated[tuple[int, ...], PlainValidator(seeds), WithJsonSchema({"anyOf": _SEEDS})]
Domains = Annotated[tuple[str, ...] | None, PlainValidator(_domains), WithJsonSchema({"anyOf": _DOMAINS})]
_VALUES = {"type": "array", "minItems": 1, "uniqueItems": True}
Values = Annotated[tuple[Any, ...], PlainValidator(_values), WithJsonSchema(_VALUES)]
"""The choices for one parameter: plain JSON values, or names with parameters, all different and equally likely."""


def _comparison(raw: Any) -> Comparison:
    try:
        # From JSON, because strict Python mode would refuse the mapping.
        return TypeAdapter(Comparison).validate_json(json.dumps(raw), strict=True)
    except ValidationError as error:
        raise refusal(*issues_of(error, known=[key.name for key in fields(Comparison)])) from None


class SelectSpec(SuitePart):
    """How each method's settings are selected, among equally many candidates for every method.

    With `seeds` they are chosen once for each method and target, on these seeds. `tracks` are then the criteria whose
    choices train; by default `by` alone.
    """

    noun: ClassVar[str] = "key of select"
    how: Literal["grid", "random", "shared"]
    budget: Annotated[int, Field(ge=1, le=1000)]
    by: NonEmpty
    seeds: Seeds | None = None
    tracks: list[NonEmpty] = Field(default_factory=list)
    space: dict[str, Values] = Field(default_factory=dict)

    @property
    def criteria(self) -> tuple[str, ...]:
        """The criteria whose choices are trained, `by` first."""
        return tuple(dict.fromkeys((self.by, *self.tracks)))


class MethodSpec(SuitePart):
    """A row of the table. After validation the discrepancy and the aggregator are None if the scheme takes none.

    Its `training`, of which `optimizer` is the short form, `split_sources`, `labelled_target` and paths of `search`
    override the suite's. With `standardise: domain` each domain's inputs get mean 0 and variance 1 by its own training
    rows. `estimator`, `sees`, `dense` and `arguments` are the short form of `scheme: {estimator: ...}`. With
    `prior_correction` its predictions for the target are corrected for the shares of classes there, estimated by EM.
    """

    scheme: Annotated[Configured[SchemeBase], of_kind("scheme")] = Field(default="adapt", validate_default=True)
    discrepancy: Annotated[Configured[Discrepancy], of_kind("discrepancy")] | None = None
    aggregator: Annotated[Configured[Aggregator], of_kind("aggregator")] | None = None
    mu: NonNegative = 0.0
    reference: bool = False
    optimizer: Optimizer | None = None
    training: UpdateRule = UpdateRule()
    split_sources: Splitting | None = None
    labelled_target: Labels | None = None
    standardise: Literal["domain"] | None = None
    estimator: str | None = None
    sees: Literal["sources", "target"] | None = None
    dense: bool | None = None
    arguments: dict[str, Any] | None = None
    prior_correction: Literal["em"] | None = None
    search: dict[str, Values] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _own_estimator(cls, raw: Any) -> Any:
        return as_scheme(raw) if isinstance(raw, dict) else raw

    @property
    def adapts(self) -> bool:
        """Whether a discrepancy is reduced."""
        return self.discrepancy is not None and self.discrepancy.name != NO_DISCREPANCY

    @property
    def sees_target(self) -> bool:
        """Whether training or predicting needs unlabelled inputs of the target."""
        if self.standardise is not None or self.prior_correction is not None:
            return True
        scheme = self.scheme.component
        discrepancy = None if self.discrepancy is None else self.discrepancy.component
        return scheme.draws_target(discrepancy) or scheme.target_statistics

    @model_validator(mode="after")
    def _complete(self, info: ValidationInfo) -> MethodSpec:
        refuse_any([*self._unsuited(), *self._untrained(), *self._unweighed()])
        filled: dict[str, Any] = {}
        if self.optimizer is not None:
            filled["training"] = self.training.model_copy(update={"optimizer": self.optimizer})
        if self.scheme.component.uses_discrepancy:
            registry = context_of(info).registry
            filled["discrepancy"] = self.discrepancy or choose(registry, "discrepancy", NO_DISCREPANCY)
            filled["aggregator"] = self.aggregator or choose(registry, "aggregator", DEFAULT_AGGREGATOR)
        return self.model_copy(update=filled)

    def _unsuited(self) -> Issues:
        scheme, name = self.scheme.component, self.scheme.name
        if scheme.needs_target_labels and not self.reference:
            # A method that has seen the target's labels must never be ranked.
            yield ValidationIssue(("scheme",), f"{name} uses target labels; add reference: true")
        if not scheme.uses_inputs and not self.reference:
            what = "shows predictions of another's model" if scheme.uses_predictions else "learns nothing"
            yield ValidationIssue(("scheme",), f"{name} {what}; add reference: true")
        if scheme.uses_predictions and self.prior_correction is not None:
            yield ValidationIssue(("prior_correction",), f"{name} changes no prediction; remove it", "key")
        if scheme.needs_target_labels and self.labelled_target is not None:
            yield ValidationIssue(("labelled_target",), f"{name} sees all target labels; remove it", "key")
        if scheme.uses_discrepancy:
            return
        for part in ("aggregator", "discrepancy"):
            if getattr(self, part) is not None:
                yield ValidationIssue((part,), f"scheme {name!r} takes none; remove it", "key")

    def _untrained(self) -> Issues:
        if self.training.given and isinstance(self.scheme.component, Predictor):
            yield ValidationIssue(("training",), f"scheme {self.scheme.name!r} takes no steps; remove it", "key")
        if self.optimizer is not None and self.training.optimizer is not None:
            yield ValidationIssue(("optimizer",), "is given in training, too; keep one of the two", "key")
        known = [stage.name for stage in self.scheme.component.stages] if self.training.stages else []
        for name in self.training.stages:
            if name not in known:
                what = f"scheme {self.scheme.name!r} has no such stage{hint(name, known)}"
                yield ValidationIssue(("training", "stages", name), what, "key")

    def _unweighed(self) -> Issues:
        scheme, given = self.scheme.component, "mu" in self.model_fields_set
        if not scheme.uses_mu:
            if given:
                yield ValidationIssue(("mu",), f"scheme {self.scheme.name!r} takes none; remove it", "key")
        elif scheme.uses_discrepancy and not self.adapts:
            if self.mu > 0:
                yield ValidationIssue(
                    ("mu",), f"has no discrepancy to weigh; name one, or remove mu (it is {self.mu:g})"
                )
        elif not given:
            # A part without weight would silently have no effect.
            part = "discrepancy" if scheme.uses_discrepancy else "scheme"
            yield ValidationIssue((part,), "needs a weight; add mu, such as mu: 0.01")


class ExperimentFile(SuitePart):
    """A suite of one experiment: one dataset with one training configuration, and one table.

    `requires` names further distributions with components, and where pip gets them.
    """

    schema_: Version = Field(alias="schema")
    name: Name
    description: str = ""
    requires: dict[Name, str] = Field(default_factory=dict)
    dataset: Annotated[Configured[Dataset], of_kind("dataset")]
    targets: Domains = None
    sources: Domains = None
    seeds: Seeds
    backbone: Annotated[Configured[Backbone], of_kind("backbone")]
    training: TrainingConfig
    methods: Annotated[dict[Name, MethodSpec], Field(min_length=1)]
    leave_out_sources: bool = False
    split_sources: Splitting | None = None
    labelled_target: Labels = 0
    standardise_labels: bool = True
    # Validated even if not given, to distinguish a missing field from one with mistakes.
    select: SelectSpec | None = Field(default=None, validate_default=True)
    validators: list[Annotated[Configured[Validator], of_kind("validator")]] | None = None
    metric: Annotated[Configured[Metric], of_kind("metric")] | None = None
    keep: list[Literal["predictions", "weights"]] = Field(default_factory=list)
    compare: Annotated[Comparison, PlainValidator(_comparison, json_schema_input_type=Comparison)] = Comparison()
    fetch: bool = False
    notes: list[str] = Field(default_factory=list)
    published: PublishedSpec | None = None

    @field_validator("*", mode="wrap")
    @classmethod
    def _keep(cls, raw: Any, handler: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
        # Stored separately, so that parts that depend on each other are checked even if a third is wrong.
        value = handler(raw)
        context_of(info).sound[str(info.field_name)] = value
        return value

    @field_validator("training")
    @classmethod
    def _of_no_stage(cls, training: TrainingConfig) -> TrainingConfig:
        if training.stages:
            what = "belongs to a method, whose scheme has stages; set it in the method's own training"
            raise refused(what, ("stages",), "key")
        return training

    @field_validator("requires")
    @classmethod
    def _installed(cls, requires: dict[str, str], info: ValidationInfo) -> dict[str, str]:
        registry = context_of(info).registry
        refuse_any(
            ValidationIssue((name,), f"is not installed; pip installs it from {shown_value(where)}", "key")
            for name, where in requires.items()
            if not registry.brings(name)
        )
        return requires


class IncludeFile(SuitePart):
    """A suite that joins others; each keeps its name as an experiment, and its own metric if it names one."""

    schema_: Version = Field(alias="schema")
    name: Name
    description: str = ""
    include: Annotated[list[str], Field(min_length=1)]
    metric: Annotated[Configured[Metric], of_kind("metric")] | None = None
    fetch: bool = False
