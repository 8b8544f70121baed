"""The kernel two-sample distance, and squared distances between rows."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from msda_bench.api import Count, Discrepancy, Positive, component


def squared_distances(a: Tensor, b: Tensor) -> Tensor:
    """The squared distances (..., m, n) between points (..., m, d) and (..., n, d), never negative."""
    # By |a|^2 + |b|^2 - 2 a.b, not cdist, whose gradient is undefined at distance 0.
    cross = a @ b.transpose(-1, -2)
    squares = a.square().sum(-1).unsqueeze(-1) + b.square().sum(-1).unsqueeze(-2)
    return (squares - 2 * cross).clamp(min=0)


_LEAST = 1e-30


class _MultiKernelMmd(nn.Module):
    def __init__(self, kernels: int, factor: float) -> None:
        super().__init__()
        self.exponents = tuple(-(factor ** (kernels // 2 - i)) for i in range(kernels))

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        k, m = source.shape[:2]
        both = torch.cat([source, target.expand(k, *target.shape[-2:])], dim=1)
        squares = squared_distances(both, both)
        n = both.shape[1]
        bandwidth = squares.detach().sum((1, 2)) / (n * n - n)
        # Of equal features the bandwidth is 0; one that is tiny would have a gradient that is not finite.
        widths = torch.where(bandwidth < _LEAST, 1, bandwidth)
        unit = squares / widths.view(k, 1, 1)
        kernel = torch.exp(unit * self.exponents[0])
        for exponent in self.exponents[1:]:  # a stack and a mean would copy every kernel again
            kernel = kernel + torch.exp(unit * exponent)
        kernel = kernel / len(self.exponents)
        of_sources = kernel[:, :m, :m].mean((1, 2))
        of_targets = kernel[:, m:, m:].mean((1, 2))
        across = kernel[:, :m, m:].mean((1, 2))
        return of_sources + of_targets - 2 * across


@component
class Mmd(Discrepancy):
    """Squared maximum mean discrepancy under a mean of Gaussian kernels.

    MMD^2 = E k(s, s') + E k(t, t') - 2 E k(s, t), the biased estimate, never negative (Gretton et al. 2012, equation
    5), with k the mean of exp(-d^2 / (c_j w)): w the mean squared distance within both batches, without gradient, and
    c_j = factor^j around 1, as in deep adaptation networks (Long et al. 2015).
    """

    name = "mmd"
    symmetric = True

    kernels: Count = 5
    factor: Positive = 2.0

    def build(self, feature_dim: int, k: int) -> nn.Module:
        """A module without parameters."""
        return _MultiKernelMmd(self.kernels, self.factor)
