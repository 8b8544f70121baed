"""The Wasserstein-1 distance by critics."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from msda_bench.api import Count, Discrepancy, NonNegative, StepKey, component
from msda_bench.functional import reverse_gradient, uniform
from msda_bench_builtin.discrepancies.critics import critics


class _WassersteinCritics(StepKey):
    def __init__(self, feature_dim: int, k: int, hidden: tuple[int, ...], penalty: float) -> None:
        super().__init__()
        self.critics = critics(k, feature_dim, hidden)
        self.penalty = penalty

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        targets = target.expand(len(source), *target.shape)
        size = source.shape[1]
        values = self.critics(reverse_gradient(torch.cat([source, targets], dim=1))).squeeze(-1)
        distance = values[:, :size].mean(1) - values[:, size:].mean(1)
        penalty = self.penalty * self._gradient_penalty(source.detach(), targets.detach())
        # With another reversal, critics raise the distance that features lower. The penalty trains the critics and is
        # not part of the distance, so its value is subtracted.
        return reverse_gradient(distance) + (penalty - penalty.detach())

    def _gradient_penalty(self, source: Tensor, target: Tensor) -> Tensor:
        """(||grad|| - 1)^2 of each critic: (k,), a mean over both batches and a point between each pair."""
        share = uniform(self.key, tuple(source.shape[:2])).to(source.dtype).unsqueeze(-1)
        points = torch.cat([source, target, share * source + (1 - share) * target], dim=1)
        # The critics are independent, so the gradient of their sum holds each one's own.
        gradient: Tensor = torch.func.grad(lambda x: self.critics(x).sum())(points)
        penalty: Tensor = (torch.linalg.vector_norm(gradient, dim=-1) - 1).square().mean(1)
        return penalty


@component
class Wasserstein(Discrepancy):
    """Wasserstein-1 distance by one critic a source, with a gradient penalty.

    gap_i = mean f_i(source) - mean f_i(target), which critic f_i raises and the features lower, behind gradient
    reversal; f_i is held near slope 1 by `penalty` (||grad f_i|| - 1)^2 at both batches and at random points between
    them (Shen et al. 2018, "Wasserstein Distance Guided Representation Learning"; the penalty is of Gulrajani et al.
    2017). The penalty trains the critics but is not in the gap. Here critics and features alternate with one step each;
    the several critic steps of Shen et al. are the scheme `alternate`.
    """

    name = "wasserstein"

    hidden: tuple[Count, ...] = (100,)
    penalty: NonNegative = 10.0

    def build(self, feature_dim: int, k: int) -> nn.Module:
        """One critic a source, of sizes feature_dim - hidden - 1."""
        return _WassersteinCritics(feature_dim, k, self.hidden, self.penalty)
