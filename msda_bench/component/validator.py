"""Validators: scores for model selection that never see a target label."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from msda_bench.component.base import Component
from msda_bench.component.dataset import Task


@dataclass(frozen=True, eq=False)
class ValidationView:
    """The data that a validator may see.

    Attributes:
        task: the task.
        source_features: one (n_i, d) tensor a source, of examples held out from training; no tensor at all if a source
            has none, which only validators without `needs_sources` meet.
        source_outputs: one (n_i, task.outputs) tensor a source, of the same examples.
        source_labels: one (n_i,) tensor a source.
        target_features: (n, d), of the target's training part.
        target_outputs: (n, task.outputs).
    """

    task: Task
    source_features: tuple[Tensor, ...]
    source_outputs: tuple[Tensor, ...]
    source_labels: tuple[Tensor, ...]
    target_features: Tensor
    target_outputs: Tensor


class Validator(Component, ABC):
    """Scores a trained model; higher is better.

    Attributes:
        tasks: the kinds of task that it scores.
        needs_sources: whether it needs held-out examples of every source; a run that has none is refused.
    """

    kind: ClassVar[str] = "validator"
    tasks: ClassVar[tuple[str, ...]] = ("classification", "regression")
    needs_sources: ClassVar[bool] = True

    @abstractmethod
    def score(self, view: ValidationView) -> float:
        """The score, a finite number."""
