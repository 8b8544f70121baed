"""Aggregators: how the sources' risks and gaps become one objective."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from msda_bench.component.base import Component


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
    def __call__(self, risks: Tensor, gaps: Tensor, mu: float | Tensor, state: Tensor) -> Aggregate:
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
