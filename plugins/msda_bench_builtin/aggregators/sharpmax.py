"""DARN's aggregation."""

from __future__ import annotations

from typing import Annotated, Literal

import torch
from torch import Tensor

from msda_bench.api import Added, Aggregate, Aggregator, Positive, component
from msda_bench.functional import sharpmax


@component
class Sharpmax(Aggregator):
    """DARN: the weights that minimise the bound, alpha = sharpmax(-gamma g).

    The objective is min over alpha of U(alpha) = <g, alpha> + ||alpha||_2 / gamma with g = risks + mu gaps (Wen et al.
    2020, equations 4 and 6). gamma = 1 / tau is the inverse temperature: large, and the best source takes all; small,
    and all count equally.

    Parameters:
        gamma: 1 / tau.
        scale: of the objective. "text" is U itself; "code" is gamma U, which the released code of Wen et al. minimises:
            the same weights, and gradients multiplied by gamma. The effect of this factor depends on the optimiser:
            full for SGD, only through eps for Adadelta.
    """

    name = "sharpmax"
    stacked = ("gamma",)

    gamma: Positive = 1.0
    scale: Annotated[Literal["text", "code"], Added()] = "text"

    def __call__(self, risks: Tensor, gaps: Tensor, mu: float | Tensor, state: Tensor) -> Aggregate:
        """The bound at its minimum over alpha."""
        g = risks + mu * gaps
        # alpha minimises U, so by the envelope theorem dU/dg = alpha exactly: no gradient need pass through sharpmax.
        weights = sharpmax(-self.gamma * g.detach())
        objective = weights @ g + torch.linalg.vector_norm(weights) / self.gamma
        return Aggregate(self.gamma * objective if self.scale == "code" else objective, weights, state)
