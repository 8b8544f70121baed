"""No discrepancy."""

from __future__ import annotations

from torch import Tensor, nn

from msda_bench.api import Discrepancy, component


class _Zero(nn.Module):
    def forward(self, source: Tensor, target: Tensor | None) -> Tensor:
        return source.new_zeros(source.shape[0])


@component
class NoDiscrepancy(Discrepancy):
    """No adaptation: every gap is 0 and no target batch is drawn."""

    name = "none"
    uses_target = False

    def build(self, feature_dim: int, k: int) -> nn.Module:
        """A module that returns zeros."""
        return _Zero()
