"""How far a source is from the target, and how the sources' risks and gaps become one objective."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from msda_bench.component.base import Component


class Discrepancy(Component, ABC):
    """Estimates disc(T, S_i) of the paper's equation 3 from a batch of features of every domain.

    Attributes:
        uses_target: False if it ignores the target's features, so that no target batch need be drawn.
        symmetric: whether exchanging the source's and the target's batch leaves the gap unchanged.
        weighs_examples: whether the module's forward takes, after the features, weights of the source's (k, b) and the
            target's examples (b,), of mean 1 in each batch; without them all count equally. A scheme may then use them.
    """

    kind: ClassVar[str] = "discrepancy"
    uses_target: ClassVar[bool] = True
    symmetric: ClassVar[bool] = False
    weighs_examples: ClassVar[bool] = False

    @abstractmethod
    def build(self, feature_dim: int, k: int) -> nn.Module:
        """A module whose forward maps source features (k, b, d) and target features (b, d) to gaps (k,).

        It may have critics of its own. Everything is minimised by one optimiser, so a critic that maximises reverses
        its gradient with `msda_bench.functional.reverse_gradient`. Random numbers in training come from the key of a
        `msda_bench.api.StepKey`; a module that changes in the course of training reads the `progress` of a
        `msda_bench.api.StepProgress`.
        """


class Aggregate(NamedTuple):
    """What an aggregator returns.

    Attributes:
        objective: scalar to minimise.
        weights: (k,) alpha on the simplex, for the record; the gradient need not flow through it.
        state: passed to the next step.
    """

    objective: Tensor
    weights: Tensor
    state: Tensor


class Aggregator(Component, ABC):
    """Weights the sources: the min over alpha of the paper's equation 4, or another rule instead."""

    kind: ClassVar[str] = "aggregator"

    @abstractmethod
    def __call__(
        self,
        risks: Tensor,
        gaps: Tensor,
        mu: float | Tensor,
        state: Tensor,
    ) -> Aggregate:
        """The objective of one step.

        Args:
            risks: (k,) mean task loss of each source's batch.
            gaps: (k,) discrepancy of each source to the target.
            mu: weight of the gaps.
            state: returned by the previous step; in the first step, by `start`.
        """

    def start(self, sizes: Tensor) -> Tensor:
        """State before the first step of a run; empty unless overridden. Its shape depends on k alone.

        Args:
            sizes: (k,) float32, the training examples of each group.
        """
        return torch.zeros(0)
