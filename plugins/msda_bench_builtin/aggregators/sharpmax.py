"""DARN's aggregation."""

from __future__ import annotations

import torch
from torch import Tensor

from msda_bench.api import Aggregate, Aggregator, Positive, component
from msda_bench.functional import sharpmax


@component
class Sharpmax(Aggregator):
    """DARN: the weights that minimise the bound, alpha = sharpmax(-gamma g).

    The objective is min over alpha of U(alpha) = <g, alpha> + ||alpha||_2 / gamma with g = risks + mu gaps (Wen et al.
    2020, equations 4 and 6). gamma = 1 / tau is the inverse temperature: large, and the best source takes all; small,
    and all count equally.
    """

    name = "sharpmax"
    stacked = ("gamma",)

    gamma: Positive = 1.0

    def __call__(self, risks: Tensor, gaps: Tensor, mu: float | Tensor, state: Tensor) -> Aggregate:
        """The bound at its minimum over alpha."""
        g = risks + mu * gaps
        # alpha minimises U, so by the envelope theorem dU/dg = alpha exactly: no gradient need pass through sharpmax.
        weights = sharpmax(-self.gamma * g.detach())
        objective = weights @ g + torch.linalg.vector_norm(weights) / self.gamma
        return Aggregate(objective, weights, state)
