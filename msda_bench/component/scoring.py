"""What judges a trained model: validators choose by it without labels of the target, metrics report it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor

from msda_bench.component.base import Component
from msda_bench.component.task import TASK_KINDS, Task


@dataclass(frozen=True, eq=False)
class ValidationView:
    """The data that a validator may see.

    Attributes:
        task: the task.
        source_features: one (n_i, d) tensor a source, of examples held out from training; no tensor at all if a source
            has none, which only validators without `needs_sources` meet.
        source_outputs: one (n_i, task.outputs) tensor a source, of the same examples.
        source_labels: one (n_i,) tensor a source. If a suite standardises labels, they and the outputs are less the
            mean of the sources' training labels, in the user's unit.
        target_features: (n, d), of the target's training part.
        target_outputs: (n, task.outputs).
        mix: the outputs (m, task.outputs) for mixtures of the target's inputs. `mix(first, second, share)` takes rows
            (m,) int64 of the same n examples, and mixes share * x[first] + (1 - share) * x[second].
    """

    task: Task
    source_features: tuple[Tensor, ...]
    source_outputs: tuple[Tensor, ...]
    source_labels: tuple[Tensor, ...]
    target_features: Tensor
    target_outputs: Tensor
    mix: Callable[[Tensor, Tensor, float], Tensor]


class Validator(Component, ABC):
    """Scores a trained model; higher is better.

    Attributes:
        tasks: the kinds of task that it scores.
        needs_sources: whether it needs held-out examples of every source; a run that has none is refused.
    """

    kind: ClassVar[str] = "validator"
    tasks: ClassVar[tuple[str, ...]] = tuple(TASK_KINDS)
    needs_sources: ClassVar[bool] = True

    @abstractmethod
    def score(self, view: ValidationView) -> float:
        """The score, a finite number."""


@dataclass(frozen=True, eq=False)
class Tested:
    """The test of one run: the counts in its record and, for a metric with `needs_outputs`, the outputs themselves.

    Attributes:
        n: test examples.
        confusion: (m, 3) int64: a true class, a predicted class, and the number of examples. Pairs of classes that do
            not occur are missing; empty for regression.
        sum_squared_error: in squared units of the labels; like the next three, NaN for classification.
        sum_absolute_error: of the predictions.
        sum_labels: over the test examples.
        sum_squared_labels: over the test examples.
        outputs: (n, task.outputs) float32 logits or predictions, on the CPU; empty unless the metric needs them.
        labels: (n,) int64 classes or float32 numbers; empty unless the metric needs them. Numbers, and predictions of
            them, are float64 if the suite standardises labels.
    """

    n: int
    confusion: Tensor = field(default_factory=partial(torch.zeros, 0, 3, dtype=torch.int64))
    sum_squared_error: float = math.nan
    sum_absolute_error: float = math.nan
    sum_labels: float = math.nan
    sum_squared_labels: float = math.nan
    outputs: Tensor = field(default_factory=partial(torch.zeros, 0, 1))
    labels: Tensor = field(default_factory=partial(torch.zeros, 0))


class Metric(Component, ABC):
    """A number that measures how well a run did in its test.

    Attributes:
        label: its name in tables, such as "balanced accuracy".
        tasks: the kinds of task that it supports.
        higher_is_better: whether more is better.
        percent: whether its values are fractions, which tables show in percent.
        needs_outputs: whether it needs more than counts. Such a metric is computed once, when the run is tested, and is
            part of the run's key; any other is computed from the record, also for runs stored before it existed.
    """

    kind: ClassVar[str] = "metric"
    label: ClassVar[str]
    tasks: ClassVar[tuple[str, ...]] = ("classification",)
    higher_is_better: ClassVar[bool] = True
    percent: ClassVar[bool] = False
    needs_outputs: ClassVar[bool] = False

    @abstractmethod
    def value(self, tested: Tested) -> float:
        """The value; NaN if it is undefined, such as r2 if all labels are equal."""
