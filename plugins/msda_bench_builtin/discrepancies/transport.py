"""Optimal transport between features: Sinkhorn's divergence, and along random lines."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from msda_bench.api import Count, Discrepancy, Positive, StepKey, component
from msda_bench.functional import normal
from msda_bench_builtin.discrepancies.mmd import squared_distances


class _Sinkhorn(nn.Module):
    def __init__(self, blur: float, iterations: int) -> None:
        super().__init__()
        self.blur = blur
        self.iterations = iterations

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        targets = target.expand(len(source), *target.shape)
        cost = squared_distances(source, targets) / 2
        mean = cost.detach().mean((1, 2)).clamp(min=torch.finfo(cost.dtype).tiny)
        epsilon = (self.blur * mean).view(-1, 1, 1)
        # Each with itself, too, so that equal samples have distance zero.
        costs = [cost, squared_distances(source, source) / 2, squared_distances(targets, targets) / 2]
        across, ours, theirs = self._all_transports([each / epsilon for each in costs])
        return epsilon.view(-1) * (across - ours / 2 - theirs / 2)

    def _all_transports(self, costs: list[Tensor]) -> Sequence[Tensor]:
        """The transport costs of all; those of one size, the usual case, in the same operations, which are many."""
        if len({cost.shape for cost in costs}) > 1:
            return [self._transport(cost) for cost in costs]
        return self._transport(torch.cat(costs)).chunk(len(costs))

    def _transport(self, cost: Tensor) -> Tensor:
        """Regularised transport cost of uniform samples, in units of epsilon: (k, m, n) to (k,)."""
        fixed = cost.detach()
        u = fixed.new_zeros(fixed.shape[:2])
        v = fixed.new_zeros(fixed.shape[0], fixed.shape[2])
        for _ in range(self.iterations):
            of_sources = _soft_min(fixed, v)
            of_targets = _soft_min(fixed.mT, u)
            u = (u + of_sources) / 2
            v = (v + of_targets) / 2
        # At their optimum the potentials have no first-order effect, so the gradient with respect to the costs is the
        # plan. Each of the two terms has it, so take half of both.
        total = _soft_min(cost, v).mean(1) + _soft_min(cost.mT, u).mean(1)
        return (total + total.detach()) / 2


def _soft_min(cost: Tensor, potential: Tensor) -> Tensor:
    """-log mean_j exp(potential_j - cost_ij) over the last dimension."""
    count = cost.shape[-1]
    return math.log(count) - torch.logsumexp(potential.unsqueeze(-2) - cost, dim=-1)


@component
class Sinkhorn(Discrepancy):
    """Sinkhorn divergence: entropic optimal transport, minus that of each sample with itself.

    gap_i = OT_eps(S_i, T) - OT_eps(S_i, S_i) / 2 - OT_eps(T, T) / 2 with the cost |x - y|^2 / 2 (Genevay et al. 2018;
    Feydy et al. 2019, "Interpolating between Optimal Transport and MMD using Sinkhorn Divergences"), by averaged
    updates of both potentials in the log domain. It is zero for equal samples. A small `blur` approaches half the
    squared Wasserstein-2 distance and needs more iterations, a large one half the squared distance of the means.

    Parameters:
        blur: eps as a share of the mean cost between the two batches, which is not differentiated.
        iterations: updates of the potentials, before a last one that carries the gradient. 20 are exact to 1e-4 for
            features in one cloud; if classes lie apart with different frequencies in two batches, mass must move
            between them, and convergence is slow: see docs/methods.md.
    """

    name = "sinkhorn"
    version = 2
    symmetric = True

    blur: Positive = 0.1
    iterations: Count = 100

    def build(self, feature_dim: int, k: int) -> nn.Module:
        """A module without parameters."""
        return _Sinkhorn(self.blur, self.iterations)


class _Sliced(StepKey):
    def __init__(self, feature_dim: int, directions: int, order: int) -> None:
        super().__init__()
        self.shape = directions, feature_dim
        self.order = order

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        drawn = normal(self.key, self.shape).to(source.dtype)
        directions = nn.functional.normalize(drawn, dim=-1)
        # In one dimension the optimal transport keeps the order: the j-th smallest goes to the j-th smallest.
        ours = (source @ directions.T).sort(dim=1).values
        theirs = (target @ directions.T).sort(dim=0).values
        return (ours - theirs).abs().pow(self.order).mean((1, 2))


@component
class SlicedWasserstein(Discrepancy):
    """Wasserstein distance of projections on random directions, new ones in every step.

    gap_i = mean over directions of W_p^p of the projected batches, p = `order`; in one dimension that is the mean of
    |x_(j) - y_(j)|^p over the sorted values (Bonneel et al. 2015, "Sliced and Radon Wasserstein barycenters of
    measures"; Lee et al. 2019, "Sliced Wasserstein Discrepancy", who project the outputs of two classifiers instead).
    The batches have one size, as the training core draws them. It costs a product and a sort, and needs no critic.
    """

    name = "sliced_wasserstein"
    symmetric = True

    directions: Count = 128
    order: Count = 2

    def build(self, feature_dim: int, k: int) -> nn.Module:
        """A module without parameters."""
        return _Sliced(feature_dim, self.directions, self.order)
