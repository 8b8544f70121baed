"""The optimisers that a suite may name, with their parameters."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, model_validator

from msda_bench.api import NonNegative, Positive, Rate
from msda_bench.suite.faults import Fault, refusal


class Settings(BaseModel):
    """Base of all parts of a suite: strict types, no unknown keys.

    Attributes:
        noun: what its keys are called in messages.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    noun: ClassVar[str] = "key"


class Adadelta(Settings):
    """Zeiler, 2012; the paper's optimiser."""

    lr: Positive = 1.0
    rho: Rate = 0.9
    eps: Positive = 1e-6


class Adam(Settings):
    """Kingma and Ba, 2015."""

    lr: Positive = 0.001
    beta1: Rate = 0.9
    beta2: Rate = 0.999
    eps: Positive = 1e-8


class Sgd(Settings):
    """Stochastic gradient descent with momentum."""

    lr: Positive = 0.01
    momentum: Rate = 0.0
    weight_decay: NonNegative = 0.0


class Optimizer(Settings):
    """One optimiser, as `NAME` or `{NAME: {parameters}}`."""

    noun: ClassVar[str] = "optimizer"
    adadelta: Adadelta | None = None
    adam: Adam | None = None
    sgd: Sgd | None = None

    @property
    def name(self) -> str:
        """The one that was named."""
        return next(iter(self.model_fields_set))

    @property
    def params(self) -> dict[str, float]:
        """Its parameters, defaults included."""
        params: dict[str, float] = getattr(self, self.name).model_dump()
        return params

    @model_validator(mode="before")
    @classmethod
    def _expand(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {value: {}}
        if isinstance(value, dict):
            if len(value) != 1:
                raise refusal([Fault((), f"must name one optimizer, not {len(value)}")])
            return {name: {} if params is None else params for name, params in value.items()}
        return value
