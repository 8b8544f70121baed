"""Equal weights."""

from __future__ import annotations

import torch
from torch import Tensor

from msda_bench.api import Aggregate, Aggregator, component


@component
class Uniform(Aggregator):
    """Equal weights: the mean of the bound terms g = risks + mu gaps."""

    name = "uniform"

    def __call__(self, risks: Tensor, gaps: Tensor, mu: float | Tensor, state: Tensor) -> Aggregate:
        """The mean."""
        weights = torch.full_like(risks, 1 / risks.shape[-1])
        return Aggregate((risks + mu * gaps).mean(-1), weights, state)
