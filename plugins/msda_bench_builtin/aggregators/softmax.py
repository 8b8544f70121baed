"""The bound with an entropy instead of DARN's norm."""

from __future__ import annotations

import torch
from torch import Tensor

from msda_bench.api import Aggregate, Aggregator, Positive, component


@component
class Softmax(Aggregator):
    """Softmax weights: the bound regularised by their entropy; the best source counts most, and all count.

    The objective is min over alpha of <g, alpha> - H(alpha) / gamma = -log(sum_i exp(-gamma g_i)) / gamma with
    g = risks + mu gaps and H the entropy in nats; alpha = softmax(-gamma g) attains it, and is the gradient (the
    envelope theorem). So softmax weights and entropy regularisation are one. It is `logsumexp` with the sign of gamma
    changed: MDAN's favours the worst source.
    """

    name = "softmax"
    stacked = ("gamma",)

    gamma: Positive = 1.0

    def __call__(self, risks: Tensor, gaps: Tensor, mu: float | Tensor, state: Tensor) -> Aggregate:
        """A smooth minimum of the bound terms."""
        scaled = -self.gamma * (risks + mu * gaps)
        return Aggregate(-torch.logsumexp(scaled, dim=-1) / self.gamma, torch.softmax(scaled.detach(), dim=-1), state)
