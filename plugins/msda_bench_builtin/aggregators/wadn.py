"""WADN's weights."""

from __future__ import annotations

import torch
from torch import Tensor

from msda_bench.api import Aggregate, Positive, component
from msda_bench_builtin.aggregators.bounds import OfBounds


def sized_sharpmax(z: Tensor, sizes: Tensor) -> Tensor:
    """The alpha on the simplex that minimises -<z, alpha> + sqrt(sum_i alpha_i^2 / sizes_i), exact.

    alpha_i is proportional to sizes_i [z_i - nu]_+, with nu such that sum_i sizes_i [z_i - nu]_+^2 = 1. Over a support
    of the j largest scores nu is the root of a quadratic. For sizes of 1 it is sharpmax.

    Args:
        z: (k,) scores.
        sizes: (k,), positive.
    """
    # In float64, and as differences from the largest score. A score at or below -1 / sqrt(its size) has no weight, so a
    # clamp below the smallest of these bounds only keeps all values finite.
    wide = z.double()
    scale = sizes.double()
    shifted = torch.maximum(wide - wide.amax(-1, keepdim=True), -1 - scale.amin(-1, keepdim=True).rsqrt())
    order = shifted.argsort(dim=-1, descending=True)
    ordered = shifted.gather(-1, order)
    ranked = scale.gather(-1, order)
    s0 = ranked.cumsum(-1)
    s1 = (ranked * ordered).cumsum(-1)
    s2 = (ranked * ordered.square()).cumsum(-1)
    # The support grows in this order while the sum over the scores above each one's own height stays below 1.
    inside = s2 - 2 * ordered * s1 + ordered.square() * s0 < 1
    chosen = inside.sum(-1, keepdim=True).clamp(min=1) - 1
    mean = s1 / s0
    spread = s2 - s0 * mean.square()
    nu = mean - ((1 - spread).clamp(min=0) / s0).sqrt()
    above = (shifted - nu.gather(-1, chosen)).clamp(min=0)
    outside = shifted < ordered.gather(-1, chosen)
    weights = scale * above.masked_fill(outside, 0)
    return (weights / weights.sum(-1, keepdim=True)).to(z.dtype)


@component
class Wadn(OfBounds):
    """WADN's weights: as DARN's, but a source with more examples may get more weight.

    The objective is min over alpha on the simplex of <g, alpha> + sqrt(sum_i alpha_i^2 / beta_i) / gamma with
    g = risks + mu gaps and beta_i the source's size by the mean size: the domain coefficients of Shui et al. 2021
    ("Aggregating From Multiple Target-Shifted Sources"). With equal sizes it is `sharpmax`.

    Only the aggregation of their method is implemented. Differences: they solve for alpha once an epoch on averages,
    here it is solved in every step; their risks are weighted by estimated ratios of label frequencies and their gaps
    are class-conditional, with pseudo-labels, while these depend on the scheme and the discrepancy.
    """

    name = "wadn"
    stacked = ("gamma",)

    gamma: Positive = 1.0

    def start(self, sizes: Tensor) -> Tensor:
        """The sizes by their mean."""
        return sizes / sizes.mean()

    def of(self, g: Tensor, state: Tensor) -> Aggregate:
        """The bound at its minimum over alpha; the state is beta."""
        # By the envelope theorem no gradient need pass through the weights.
        weights = sized_sharpmax(-self.gamma * g.detach(), state)
        norm = torch.linalg.vector_norm(weights / state.sqrt())
        return Aggregate(weights @ g + norm / self.gamma, weights, state)
