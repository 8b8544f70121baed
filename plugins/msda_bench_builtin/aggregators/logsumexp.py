"""MDAN's soft aggregation."""

from __future__ import annotations

import torch
from torch import Tensor

from msda_bench.api import Aggregate, Aggregator, Positive, component


@component
class LogSumExp(Aggregator):
    """MDAN, soft: log-sum-exp of the bound terms; the worst source counts most.

    The objective is log(sum_i exp(gamma g_i)) / gamma with g = risks + mu gaps (Zhao et al. 2018, equation 5), whose
    gradient weights the sources by alpha = softmax(gamma g).
    """

    name = "logsumexp"
    stacked = ("gamma",)

    gamma: Positive = 10.0

    def __call__(self, risks: Tensor, gaps: Tensor, mu: float | Tensor, state: Tensor) -> Aggregate:
        """A smooth maximum of the bound terms."""
        scaled = self.gamma * (risks + mu * gaps)
        # An infinite risk takes all the weight; the softmax of infinity would be NaN.
        largest = torch.finfo(scaled.dtype).max
        weights = torch.softmax(scaled.detach().clamp(max=largest), dim=-1)
        return Aggregate(torch.logsumexp(scaled, dim=-1) / self.gamma, weights, state)
