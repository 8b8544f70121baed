"""Distances of moments."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from msda_bench.api import Count, Discrepancy, component

Pairs = Literal["all", "target"]


def moment_distances(domains: Tensor, orders: int, *, centred: bool = False) -> Tensor:
    """||E[f^n] - E[f'^n]||_2 of every two domains, summed over the orders n, with powers by element.

    Args:
        domains: (m, b, d) features.
        orders: the highest order; the lowest is 1.
        centred: whether moments from the second on are of the features minus their domain's mean.

    Returns:
        (m, m), symmetric, zero on the diagonal.
    """
    means = domains.mean(1)
    spread = domains - means.unsqueeze(1) if centred else domains
    moments = torch.stack([means, *(spread.pow(order).mean(1) for order in range(2, orders + 1))])
    # For equal domains, as on the diagonal, the norm's gradient is zero and not NaN.
    apart: Tensor = torch.linalg.vector_norm(moments.unsqueeze(2) - moments.unsqueeze(1), dim=-1)
    return apart.sum(0)


class _Moments(nn.Module):
    def __init__(self, orders: int, pairs: Pairs) -> None:
        super().__init__()
        self.orders = orders
        self.pairs = pairs

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        k = len(source)
        distances = moment_distances(torch.cat([source, target.unsqueeze(0)]), self.orders)
        to_target, between = distances[:k, k], distances[:k, :k].sum(1)
        return to_target + between / max(1, k - 1) if self.pairs == "all" else to_target


@component
class Moments(Discrepancy):
    """Moment matching between all pairs of domains, including pairs of sources.

    With D(A, B) = sum over orders n of ||E[f_A^n] - E[f_B^n]||_2, powers by element and not centred,
    gap_i = D(S_i, T) + mean over j != i of D(S_i, S_j), so that the mean of the gaps is the moment distance of Peng et
    al. 2019 ("Moment Matching for Multi-Source Domain Adaptation", equation 1). Their whole method is the scheme
    `m3sda`.

    Parameters:
        orders: the highest order; 2 in the text of Peng et al.
        pairs: "target" omits the second term.
    """

    name = "moments"

    orders: Count = 2
    pairs: Pairs = "all"

    def build(self, feature_dim: int, k: int) -> nn.Module:
        """A module without parameters."""
        return _Moments(self.orders, self.pairs)
