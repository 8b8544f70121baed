"""The bound with a squared norm instead of DARN's norm."""

from __future__ import annotations

import torch
from torch import Tensor

from msda_bench.api import Aggregate, Aggregator, Positive, component


def sparsemax(z: Tensor) -> Tensor:
    """The Euclidean projection of z (k,) onto the simplex, exact (Martins and Astudillo 2016, algorithm 1)."""
    # Scores at or below max - 1 get no weight, so the clamp, below that bound, only keeps all values finite.
    wide = z.double()
    shifted = (wide - wide.amax(-1, keepdim=True)).clamp(min=-2)
    ordered = shifted.sort(dim=-1, descending=True).values
    count = torch.arange(1, z.shape[-1] + 1, dtype=torch.float64, device=z.device)
    total = ordered.cumsum(-1) - 1
    support = (count * ordered > total).sum(-1, keepdim=True)
    threshold = total.gather(-1, support - 1) / support
    return (shifted - threshold).clamp(min=0).to(z.dtype)


@component
class Sparsemax(Aggregator):
    """Sparsemax weights: the bound regularised by their squared norm; far worse sources get none.

    The objective is min over alpha on the simplex of <g, alpha> + ||alpha||_2^2 / (2 gamma) with g = risks + mu gaps;
    alpha = sparsemax(-gamma g) attains it (Martins and Astudillo 2016, "From Softmax to Sparsemax"). DARN's sharpmax
    has the norm, not its square.
    """

    name = "sparsemax"
    stacked = ("gamma",)

    gamma: Positive = 1.0

    def __call__(self, risks: Tensor, gaps: Tensor, mu: float | Tensor, state: Tensor) -> Aggregate:
        """The bound at its minimum over alpha."""
        g = risks + mu * gaps
        # By the envelope theorem no gradient need pass through the projection.
        weights = sparsemax(-self.gamma * g.detach())
        return Aggregate(weights @ g + weights.square().sum(-1) / (2 * self.gamma), weights, state)
