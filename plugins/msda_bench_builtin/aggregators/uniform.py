"""Weights that no risk changes: equal ones, and by the sources' sizes."""

from __future__ import annotations

import torch
from torch import Tensor

from msda_bench.api import Aggregate, component
from msda_bench_builtin.aggregators.bounds import OfBounds


@component
class Uniform(OfBounds):
    """Equal weights: the mean of the bound terms g = risks + mu gaps."""

    name = "uniform"

    def of(self, g: Tensor, state: Tensor) -> Aggregate:
        """The mean."""
        return Aggregate(g.mean(-1), torch.full_like(g, 1 / g.shape[-1]), state)


@component
class Size(OfBounds):
    """Each source by its share of the training examples, alpha_i = m_i / sum m.

    With equal sizes it is `uniform`. The weighted risk is then that of all sources' examples pooled, each with equal
    weight (Ben-David et al. 2010, "A theory of learning from different domains", on several sources).
    """

    name = "size"

    def start(self, sizes: Tensor) -> Tensor:
        """The shares."""
        return sizes / sizes.sum()

    def of(self, g: Tensor, state: Tensor) -> Aggregate:
        """The mean by the shares, which are the state."""
        return Aggregate(state @ g, state, state)
