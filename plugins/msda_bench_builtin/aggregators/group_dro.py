"""Group distributionally robust optimisation."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from msda_bench.api import Aggregate, Positive, component
from msda_bench_builtin.aggregators.bounds import OfBounds


@component
class GroupDro(OfBounds):
    """GroupDRO: weights that grow exponentially with a source's bound term, kept from step to step.

    q_i <- q_i exp(eta g_i) / sum_j q_j exp(eta g_j) from equal weights, and the objective is <q, g> with q held fixed
    (Sagawa et al. 2020, "Distributionally Robust Neural Networks for Group Shifts", algorithm 1, whose groups are
    sources here and whose loss is the bound term g = risks + mu gaps; every source has a batch in each step). In the
    long run the worst source dominates, as in MDAN.

    Parameters:
        eta: how fast weights move; 0.01 for Sagawa et al., who train for thousands of steps. Log-weights differ by at
            most eta times the sum over the steps of the differences of g, so in few steps they hardly change: 150 steps
            with g 0.1 apart give a ratio of exp(0.15). For fewer steps take a larger eta, in proportion.
    """

    name = "group_dro"
    stacked = ("eta",)

    eta: Positive = 0.01

    def start(self, sizes: Tensor) -> Tensor:
        """The logarithms of equal weights."""
        return torch.full((len(sizes),), -math.log(len(sizes)))

    def of(self, g: Tensor, state: Tensor) -> Aggregate:
        """The bound terms by the weights after their update; the state is log q."""
        # An infinite term takes all weight, where inf - inf would make NaN of it.
        grown = (state + self.eta * g.detach()).clamp(max=torch.finfo(g.dtype).max)
        log_weights = torch.log_softmax(grown, dim=-1)
        weights = log_weights.exp()
        return Aggregate(weights @ g, weights, log_weights.to(state.dtype))
