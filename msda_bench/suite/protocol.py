"""How every method trains, and what its sources are; the base of all parts of a suite."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    ModelWrapValidatorHandler,
    PlainValidator,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import CoreSchema

from msda_bench.component.base import AddedLater, Count, NonNegative, Positive, Rate, without_added
from msda_bench.suite.issues import Loc, ValidationIssue, issues_of, refusal, refuse_any, refused, shown_value

if TYPE_CHECKING:
    from msda_bench.api import Group, SchemeBase


_MOST = 2**31 - 1
LearningRate = Annotated[float, Field(gt=0, le=1e30)]
"""A learning rate: torch holds it, and what Adam divides it by, in float32."""
Factor = Annotated[float, Field(ge=0, le=1e30)]


def _batch(raw: Any) -> int | Literal["all"]:
    if raw == "all":
        return "all"
    if type(raw) is int and 1 <= raw <= _MOST:
        return raw
    which = f"at most {_MOST}" if type(raw) is int and raw > _MOST else "at least 1, or 'all'"
    raise refused(f"must be {which}, not {shown_value(raw)}")


BatchSize = Annotated[
    int | Literal["all"],
    PlainValidator(_batch),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1}, {"const": "all"}]}),
]
Share = Annotated[float, Field(gt=0, lt=1)]
NonEmpty = Annotated[str, Field(min_length=1)]
"""A text of at least one character."""


class SuitePart(BaseModel):
    """Base of all parts of a suite: strict types, no unknown keys.

    Attributes:
        noun: the name of its keys in messages.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    noun: ClassVar[str] = "key"

    @classmethod
    def known(cls) -> list[str]:
        """Its keys."""
        return [field.alias or name for name, field in cls.model_fields.items()]

    @model_validator(mode="wrap")
    @classmethod
    def _in_words(cls, raw: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            return handler(raw)
        except ValidationError as error:
            raise refusal(*issues_of(error, cls.noun, cls.known())) from None

    def identity(self) -> dict[str, Any]:
        """The values in the keys of runs, as plain JSON: without `AddedLater` ones that change no number."""
        values = {name: value.identity() if isinstance(value, SuitePart) else value for name, value in self}
        return without_added(type(self), values)


class Adadelta(SuitePart):
    """Zeiler, 2012; the paper's optimiser."""

    lr: LearningRate = 1.0
    rho: Rate = 0.9
    eps: Positive = 1e-6
    weight_decay: Annotated[Factor, AddedLater()] = 0.0


class Adam(SuitePart):
    """Kingma and Ba, 2015; weight decay is added to the gradient."""

    lr: LearningRate = 0.001
    beta1: Rate = 0.9
    beta2: Rate = 0.999
    eps: Positive = 1e-8
    weight_decay: Annotated[Factor, AddedLater()] = 0.0


class AdamW(Adam):
    """Loshchilov and Hutter, 2019: Adam with weight decay decoupled from the gradient."""

    weight_decay: Factor = 0.01


class Sgd(SuitePart):
    """Stochastic gradient descent with momentum, optionally Nesterov's."""

    lr: LearningRate = 0.01
    momentum: Rate = 0.0
    weight_decay: Factor = 0.0
    nesterov: Annotated[bool, AddedLater()] = False

    @model_validator(mode="after")
    def _needs_momentum(self) -> Sgd:
        if self.nesterov and not self.momentum:
            raise refused("needs momentum; add it, such as momentum: 0.9", ("nesterov",))
        return self


class OneOf(SuitePart):
    """One of several things, as `NAME` or `{NAME: {parameters}}`."""

    @property
    def name(self) -> str:
        """The chosen one."""
        return next(iter(self.model_fields_set))

    @property
    def params(self) -> dict[str, Any]:
        """Its parameters, defaults included."""
        return dict(getattr(self, self.name))

    def identity(self) -> dict[str, Any]:
        """Its parameters by its name."""
        return {self.name: getattr(self, self.name).identity()}

    @model_validator(mode="before")
    @classmethod
    def _expand(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {value: {}}
        if isinstance(value, dict):
            if len(value) != 1:
                raise refused(f"must name one {cls.noun}, not {len(value)}")
            return {name: {} if params is None else params for name, params in value.items()}
        return value

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        mapping = handler.resolve_ref_schema(handler(core))
        return {"anyOf": [{"enum": list(cls.model_fields)}, {**mapping, "minProperties": 1, "maxProperties": 1}]}


class Optimizer(OneOf):
    """One optimiser, as `NAME` or `{NAME: {parameters}}`."""

    noun: ClassVar[str] = "optimizer"
    adadelta: Adadelta | None = None
    adam: Adam | None = None
    adamw: AdamW | None = None
    sgd: Sgd | None = None


class Constant(SuitePart):
    """The learning rate does not change."""


class Cosine(SuitePart):
    """Loshchilov and Hutter, 2017, without restarts: falls to the share `to` along half a cosine."""

    to: Annotated[float, Field(ge=0, le=1)] = 0.0


class Polynomial(SuitePart):
    """Ganin et al., 2016: (1 + a p)^-b at the progress p, from 0 to 1."""

    a: NonNegative = 10.0
    b: NonNegative = 0.75


class Schedule(OneOf):
    """How the learning rate falls, as `NAME` or `{NAME: {parameters}}`."""

    noun: ClassVar[str] = "schedule"
    none: Constant | None = None
    cosine: Cosine | None = None
    polynomial: Polynomial | None = None


class Factors(SuitePart):
    """Factors for the learning rate of each part of a network.

    The learning rate of a pretrained network, the trunk of the features, is multiplied by `trunk` as well.
    """

    noun: ClassVar[str] = "part"
    trunk: Annotated[Factor, AddedLater()] = 1.0
    features: Annotated[Factor, AddedLater()] = 1.0
    predictor: Annotated[Factor, AddedLater()] = 1.0
    critic: Annotated[Factor, AddedLater()] = 1.0


class Averaged(SuitePart):
    """The average of weights to test: over the steps of the last epoch, or exponential over all steps."""

    over: Annotated[Literal["last_epoch"] | None, AddedLater()] = None
    ema: Annotated[Share | None, AddedLater()] = None

    @model_validator(mode="after")
    def _one(self) -> Averaged:
        if (self.over is None) == (self.ema is None):
            raise refused("must be {over: last_epoch} or {ema: 0.999}")
        return self


def _warmup(raw: Any) -> int | float:
    """A number of steps, or a share of all."""
    number = isinstance(raw, int | float) and not isinstance(raw, bool)
    if not number or raw < 0 or (raw >= 1 and raw != raw // 1) or raw == math.inf:
        raise refused(f"must be a number of steps, or a share of them such as 0.05, not {shown_value(raw)}")
    return raw if 0 < raw < 1 else int(raw)


_WARMUP_SCHEMA = {
    "anyOf": [{"type": "integer", "minimum": 0}, {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}]
}


class Splitting(SuitePart):
    """How each source is split into the same number of finer domains (Wen et al. 2020, section 3.1, remark 4).

    `by` is kmeans, on the training inputs, or chance, into equal parts.
    """

    noun: ClassVar[str] = "key of split_sources"
    clusters: Annotated[int, Field(ge=1, le=1000)]
    by: Literal["kmeans", "chance"] = "kmeans"


class StageRule(SuitePart):
    """What a stage of a scheme has of its own; it starts new optimisers, and its schedule counts from its start."""

    noun: ClassVar[str] = "key of a stage"
    schedule: Annotated[Schedule | None, AddedLater()] = None
    warmup: Annotated[float | None, PlainValidator(_warmup), WithJsonSchema(_WARMUP_SCHEMA), AddedLater()] = None
    lr_factors: Annotated[Factors | None, AddedLater()] = None

    @property
    def given(self) -> dict[str, Any]:
        """The values that replace those of the run, by name."""
        return {name: value for name, value in self if value is not None}


class UpdateRule(SuitePart):
    """How the weights are updated: what changes neither the number of steps nor the labels that a method sees.

    A method's own replaces what it gives of the suite's training.
    """

    noun: ClassVar[str] = "key of training"
    optimizer: Optimizer | None = None
    schedule: Annotated[Schedule, AddedLater({"none": {}})] = Schedule(none=Constant())
    warmup: Annotated[float, PlainValidator(_warmup), WithJsonSchema(_WARMUP_SCHEMA), AddedLater()] = 0
    clip: Annotated[Positive | None, AddedLater()] = None
    lr_factors: Annotated[Factors, AddedLater({})] = Factors()
    average: Annotated[Averaged | None, AddedLater()] = None
    stages: Annotated[dict[str, StageRule], AddedLater({})] = {}

    @property
    def factors(self) -> Iterator[tuple[Loc, Factors]]:
        """Every given set of factors, with its place."""
        yield ("lr_factors",), self.lr_factors
        for name, stage in self.stages.items():
            if stage.lr_factors is not None:
                yield ("stages", name, "lr_factors"), stage.lr_factors

    @property
    def given(self) -> dict[str, Any]:
        """The given values by name, in the order of the fields."""
        return {name: getattr(self, name) for name in type(self).model_fields if name in self.model_fields_set}

    @model_validator(mode="before")
    @classmethod
    def _equal_steps(cls, raw: Any) -> Any:
        if cls is not UpdateRule or not isinstance(raw, dict):
            return raw
        of_all = TrainingConfig.model_fields.keys() - cls.model_fields.keys()
        what = "is the same for all methods, which take equal steps on as many labels; set it in the suite's training"
        refuse_any(ValidationIssue((name,), what, "key") for name in raw if name in of_all)
        if "optimizer" in raw and raw["optimizer"] is None:
            raise refused("must name an optimizer, not null", ("optimizer",))
        return raw


class TrainingConfig(UpdateRule):
    """How long, on how many examples and with which optimiser every method trains.

    `batch` is the number of examples of each group, and of the target, in a step, drawn at random with replacement.
    With "all", a step takes every example, and repeats smaller groups to fill up to the largest. `steps` are those of
    an epoch, None to let `epoch` decide; without `epochs` they are all steps of the run.
    """

    noun: ClassVar[str] = "key"
    epochs: Count | None = None
    batch: BatchSize
    optimizer: Optimizer
    steps: Count | None = None
    precision: Annotated[Literal["float32", "tf32", "bf16"], AddedLater()] = "float32"
    epoch: Annotated[Literal["equal", "scheme"], AddedLater("scheme")] = "equal"

    def identity(self) -> dict[str, Any]:
        """The values in keys, with the optimizer and the schedule each in two: name and parameters."""
        values = super().identity()
        for name in ("optimizer", "schedule"):
            if name in values:  # not a schedule at its default
                ((values[name], values[f"{name}_params"]),) = values[name].items()
        return values

    def of_stage(self, name: str) -> TrainingConfig:
        """The protocol with what a stage has of its own."""
        return self.model_copy(update=self.stages[name].given if name in self.stages else {})

    @model_validator(mode="after")
    def _has_an_end(self) -> TrainingConfig:
        if self.epochs is None and self.steps is None:
            raise refused("is missing; give epochs, or the total number of steps", ("epochs",), "missing")
        return self


def labelled_groups(
    scheme: SchemeBase,
    sources: Group,
    target: str,
    splitting: Splitting | None,
    labelled_target: int,
) -> tuple[Group, ...]:
    """The labelled groups of a run, from the scheme's grouping of the sources' parts.

    If all parts of a source are drawn as one, they have the source's own name, so that a scheme that pools the sources
    draws the same batches with and without splitting. Labelled examples of the target, if any, are the last source.
    """
    parts = {source: source_parts(source, splitting) for source in sources}
    names = list(itertools.chain.from_iterable(parts.values()))
    if labelled_target:
        names.append(labelled_part(target))
    return tuple(_whole(group, parts) for group in scheme.groups(tuple(names), target))


def batches_of(groups: Sequence[Group], sources: int) -> int:
    """The number of batches that each labelled group draws in a step if all methods see equally many examples.

    One for each of its domains. A single group, such as the target of an oracle, draws one for each of the sources.

    Raises:
        ValueError: the groups hold different numbers of domains, so some examples would count more than others.
    """
    counts = sorted({len(group) for group in groups})
    if len(counts) != 1:
        raise ValueError(f"its groups hold {' and '.join(map(str, counts))} domains; add epoch: scheme to training")
    return max(counts[0], sources) if len(groups) == 1 else counts[0]


def source_parts(source: str, splitting: Splitting | None) -> Group:
    """The names of a source's parts, such as books/0; its own name if it is not split."""
    if splitting is None or splitting.clusters == 1:
        return (source,)
    return tuple(f"{source}/{part}" for part in range(splitting.clusters))


def labelled_part(target: str) -> str:
    """The name of the source that holds the target's labelled examples."""
    return f"{target}/labelled"


def _whole(group: Group, parts: Mapping[str, Group]) -> Group:
    """The group with a source's own name in place of all of its parts."""
    source_of = {part: source for source, of_source in parts.items() for part in of_source}
    drawn: dict[str, list[str]] = {}
    for name in group:
        drawn.setdefault(source_of.get(name, name), []).append(name)
    whole: list[str] = []
    for source, names in drawn.items():
        whole += [source] if set(names) == set(parts.get(source, ())) else names
    return tuple(whole)
