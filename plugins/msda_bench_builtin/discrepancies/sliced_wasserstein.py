"""Wasserstein distance along random directions."""

from __future__ import annotations

from torch import Tensor, nn

from msda_bench.api import Count, Discrepancy, StepKey, component
from msda_bench.functional import normal


class _Sliced(StepKey):
    def __init__(self, feature_dim: int, directions: int, order: int) -> None:
        super().__init__()
        self.shape = directions, feature_dim
        self.order = order

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        directions = nn.functional.normalize(normal(self.key, self.shape).to(source.dtype), dim=-1)
        # In one dimension the optimal transport keeps the order: the j-th smallest goes to the j-th smallest.
        ours, theirs = (source @ directions.T).sort(dim=1).values, (target @ directions.T).sort(dim=0).values
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
