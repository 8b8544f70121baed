"""The thing to predict: a kind of task is one class, which has all that classes and numbers do differently."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from msda_bench.component.base import PLAIN_NAME
from msda_bench.component.files import Array

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class MetricInfo:
    """A metric, described for tables that do without its plugin, and kept in plans.

    `params` are plain JSON values. `stored` is whether records hold its value, since it needs outputs; any other is
    computed from their counts.
    """

    name: Annotated[str, Field(pattern=PLAIN_NAME)]
    label: Annotated[str, Field(min_length=1, max_length=80)]
    higher_is_better: bool
    percent: bool
    stored: bool = False
    params: dict[Annotated[str, Field(max_length=10_000)], Any] = field(default_factory=dict)

    @property
    def column(self) -> str:
        """Its name in csv files, such as accuracy_percent."""
        return f"{self.name}_percent" if self.percent else self.name

    @property
    def unit(self) -> str:
        """Its name in captions, and which direction is better, except for accuracy."""
        label = f"{self.label} in percent" if self.percent else self.label
        way = "higher" if self.higher_is_better else "lower"
        return label if self.name == "accuracy" else f"{label}, {way} is better"

    @property
    def sign(self) -> int:
        """1 if a higher score is better, -1 if a lower one is."""
        return 1 if self.higher_is_better else -1


class TaskKind(ABC):
    """A kind of task: its loss, what is counted in a test, its default metric and validator, and its labels.

    Attributes:
        name: as in a `Task`, in plans and in records.
        has_classes: whether labels are classes.
        metric: the default metric.
        validator: the name of the default validator.
        dtype: of the labels that a dataset loads.
        unknown: the label of an example without one.
    """

    name: ClassVar[str]
    has_classes: ClassVar[bool]
    metric: ClassVar[MetricInfo]
    validator: ClassVar[str]
    dtype: ClassVar[type[np.generic]]
    unknown: ClassVar[float]

    @abstractmethod
    def losses(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Losses (n,) of outputs (n, outputs) with labels (n,)."""

    @abstractmethod
    def predicted(self, outputs: Tensor) -> Tensor:
        """What outputs (n, outputs) predict, (n,): classes or numbers."""

    @abstractmethod
    def counted(self, outputs: Tensor, labels: Tensor) -> dict[str, Any]:
        """The fields of a record's outcome, but for the number of examples; outputs are finite."""

    @abstractmethod
    def are_unknown(self, labels: Tensor | Array) -> Any:
        """Which labels (n,) stand for none, bool."""

    @abstractmethod
    def summary(self, labels: Tensor, classes: int) -> Tensor:
        """What is known of labels (n,): how many examples each class has, or the least and the largest number."""

    @abstractmethod
    def label_faults(self, labels: Array, classes: int) -> Iterator[str]:
        """What is wrong with the labels (n,) that a dataset loaded, in a few words each."""


class _Classification(TaskKind):
    """One of several classes: cross-entropy in nats; a table of true and predicted classes is counted."""

    name = "classification"
    has_classes = True
    metric = MetricInfo("accuracy", "accuracy", higher_is_better=True, percent=True)
    validator = "source_accuracy"
    dtype = np.int64
    unknown = -1

    def losses(self, outputs: Tensor, labels: Tensor) -> Tensor:
        from torch.nn import functional

        return functional.cross_entropy(outputs, labels, reduction="none")

    def predicted(self, outputs: Tensor) -> Tensor:
        return outputs.argmax(-1)

    def counted(self, outputs: Tensor, labels: Tensor) -> dict[str, Any]:
        predicted = self.predicted(outputs)
        pairs = Counter(zip(labels.tolist(), predicted.tolist(), strict=True))
        confusion = tuple((*pair, count) for pair, count in sorted(pairs.items()))
        return {"n_correct": int((predicted == labels).sum()), "confusion": confusion}

    def are_unknown(self, labels: Tensor | Array) -> Any:
        return labels < 0

    def summary(self, labels: Tensor, classes: int) -> Tensor:
        return labels.bincount(minlength=classes)

    def label_faults(self, labels: Array, classes: int) -> Iterator[str]:
        if labels.dtype.kind not in "iu":
            yield f"labels are {labels.dtype}; classes are whole numbers"
        (wrong,) = np.nonzero((labels < 0) | (labels >= classes))
        if len(wrong):
            what = f"none of the {classes} classes, 0..{classes - 1}"
            yield f"label {labels[wrong[0]]} of example {wrong[0]} is {what}"


class _Regression(TaskKind):
    """A number: squared error; sums of errors and of labels are counted, in float64."""

    name = "regression"
    has_classes = False
    metric = MetricInfo("mse", "mean squared error", higher_is_better=False, percent=False)
    validator = "source_risk"
    dtype = np.float32
    unknown = float("nan")

    def losses(self, outputs: Tensor, labels: Tensor) -> Tensor:
        return (outputs.squeeze(-1) - labels).square()

    def predicted(self, outputs: Tensor) -> Tensor:
        return outputs[:, 0]

    def counted(self, outputs: Tensor, labels: Tensor) -> dict[str, Any]:
        truth = labels.double()
        errors = self.predicted(outputs).double() - truth
        return {
            "sum_squared_error": float(errors.square().sum()),
            "sum_absolute_error": float(errors.abs().sum()),
            "sum_labels": float(truth.sum()),
            "sum_squared_labels": float(truth.square().sum()),
        }

    def are_unknown(self, labels: Tensor | Array) -> Any:
        return labels != labels  # noqa: PLR0124 - NaN, in torch and in numpy

    def summary(self, labels: Tensor, classes: int) -> Tensor:
        import torch

        return torch.stack(labels.aminmax())

    def label_faults(self, labels: Array, classes: int) -> Iterator[str]:
        if labels.dtype.kind not in "fiu":
            yield f"labels are {labels.dtype}; regression needs numbers"
        (wrong,) = np.nonzero(~np.isfinite(labels.astype(np.float32)))
        if len(wrong):
            yield f"label {labels[wrong[0]]} of example {wrong[0]} is not finite"


TASK_KINDS: Mapping[str, TaskKind] = MappingProxyType({kind.name: kind for kind in (_Classification(), _Regression())})
"""The kinds of task by name."""


@dataclass(frozen=True)
class Task:
    """The thing to predict: one of `classes` labels (int64, 0-based), or a real number (float32)."""

    kind: Literal["classification", "regression"]
    classes: int = 0

    @property
    def rules(self) -> TaskKind:
        """What its kind decides."""
        return TASK_KINDS[self.kind]

    @property
    def outputs(self) -> int:
        """Width of the predictor's output."""
        return self.classes if self.rules.has_classes else 1

    @property
    def has_classes(self) -> bool:
        """Whether its labels are classes."""
        return self.rules.has_classes
