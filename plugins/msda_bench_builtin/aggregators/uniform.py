"""Weights that no risk changes: equal ones, and by the sources' sizes."""

from __future__ import annotations

import torch
from torch import Tensor

from msda_bench.api import Aggregate, Aggregator, component


@component
class Uniform(Aggregator):
    """Equal weights: the mean of the bound terms g = risks + mu gaps."""

    name = "uniform"

    def __call__(
        self,
        risks: Tensor,
        gaps: Tensor,
        mu: float | Tensor,
        state: Tensor,
    ) -> Aggregate:
        """The mean."""
        weights = torch.full_like(risks, 1 / risks.shape[-1])
        return Aggregate((risks + mu * gaps).mean(-1), weights, state)


@component
class Size(Aggregator):
    """Each source by its share of the training examples, alpha_i = m_i / sum m.

    With equal sizes it is `uniform`. The weighted risk is then that of all sources' examples pooled, each with equal
    weight (Ben-David et al. 2010, "A theory of learning from different domains", on several sources).
    """

    name = "size"

    def start(self, sizes: Tensor) -> Tensor:
        """The shares."""
        return sizes / sizes.sum()

    def __call__(
        self,
        risks: Tensor,
        gaps: Tensor,
        mu: float | Tensor,
        state: Tensor,
    ) -> Aggregate:
        """The mean by the shares, which are the state."""
        return Aggregate(state @ (risks + mu * gaps), state, state)
