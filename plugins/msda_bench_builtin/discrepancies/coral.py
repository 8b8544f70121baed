"""Correlation alignment."""

from __future__ import annotations

from torch import Tensor, nn

from msda_bench.api import Discrepancy, component


class _Coral(nn.Module):
    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        apart = _covariance(source) - _covariance(target)
        return apart.square().sum((-2, -1)) / (4 * source.shape[-1] ** 2)


def _covariance(x: Tensor) -> Tensor:
    """Of rows (..., n, d), divided by n - 1: (..., d, d)."""
    centred = x - x.mean(-2, keepdim=True)
    return centred.transpose(-1, -2) @ centred / max(1, x.shape[-2] - 1)


@component
class Coral(Discrepancy):
    """Deep CORAL: the squared Frobenius distance of the covariances.

    gap_i = ||C_Si - C_T||_F^2 / (4 d^2), with C the covariance of a batch of d features, divided by its size less one
    (Sun and Saenko 2016, "Deep CORAL", the CORAL loss). Domains that differ only in their means have no gap. The
    division by d^2 makes gaps small: weights of 1 and more are usual.
    """

    name = "coral"
    symmetric = True

    def build(self, feature_dim: int, k: int) -> nn.Module:
        """A module without parameters."""
        return _Coral()
