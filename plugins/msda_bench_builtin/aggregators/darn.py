"""DARN's sharpmax, and the weights that it is compared with: softmax, sparsemax and the k least."""

from __future__ import annotations

from typing import Annotated, Literal

import torch
from torch import Tensor

from msda_bench.api import AddedLater, Aggregate, Count, Positive, component
from msda_bench.functional import sharpmax
from msda_bench_builtin.aggregators.bounds import OfBounds


@component
class Sharpmax(OfBounds):
    """DARN: the weights that minimise the bound, alpha = sharpmax(-gamma g).

    The objective is min over alpha of U(alpha) = <g, alpha> + ||alpha||_2 / gamma with g = risks + mu gaps (Wen et al.
    2020, equations 4 and 6). gamma = 1 / tau is the inverse temperature: large, and the best source takes all; small,
    and all count equally.

    Parameters:
        gamma: 1 / tau.
        scale: of the objective. "text" is U itself; "code" is gamma U, which the released code of Wen et al. minimises:
            the same weights, and gradients multiplied by gamma. The effect of this factor depends on the optimiser:
            full for SGD, only through eps for Adadelta.
    """

    name = "sharpmax"
    stacked = ("gamma",)

    gamma: Positive = 1.0
    scale: Annotated[Literal["text", "code"], AddedLater()] = "text"

    def of(self, g: Tensor, state: Tensor) -> Aggregate:
        """The bound at its minimum over alpha."""
        # alpha minimises U, so by the envelope theorem dU/dg = alpha exactly: no gradient need pass through sharpmax.
        weights = sharpmax(-self.gamma * g.detach())
        objective = weights @ g + torch.linalg.vector_norm(weights) / self.gamma
        if self.scale == "code":
            objective = self.gamma * objective
        return Aggregate(objective, weights, state)


@component
class Softmax(OfBounds):
    """Softmax weights: the bound regularised by their entropy; the best source counts most, and all count.

    The objective is min over alpha of <g, alpha> - H(alpha) / gamma = -log(sum_i exp(-gamma g_i)) / gamma with
    g = risks + mu gaps and H the entropy in nats; alpha = softmax(-gamma g) attains it, and is the gradient (the
    envelope theorem). So softmax weights and entropy regularisation are one. It is `logsumexp` with the sign of gamma
    changed: MDAN's favours the worst source.
    """

    name = "softmax"
    stacked = ("gamma",)

    gamma: Positive = 1.0

    def of(self, g: Tensor, state: Tensor) -> Aggregate:
        """A smooth minimum of the bound terms."""
        scaled = -self.gamma * g
        weights = torch.softmax(scaled.detach(), dim=-1)
        return Aggregate(-torch.logsumexp(scaled, dim=-1) / self.gamma, weights, state)


def sparsemax(z: Tensor) -> Tensor:
    """The Euclidean projection of z (k,) onto the simplex, exact (Martins and Astudillo 2016, algorithm 1)."""
    # Scores at or below max - 1 get no weight, so the clamp, below that bound, only keeps all values finite.
    wide = z.double()
    shifted = (wide - wide.amax(-1, keepdim=True)).clamp(min=-2)
    ordered = shifted.sort(dim=-1, descending=True).values
    count = torch.arange(1, z.shape[-1] + 1, dtype=torch.float64, device=z.device)
    total = ordered.cumsum(-1) - 1
    support = (count * ordered > total).sum(-1, keepdim=True)
    threshold = total.gather(-1, support - 1) / support
    return (shifted - threshold).clamp(min=0).to(z.dtype)


@component
class Sparsemax(OfBounds):
    """Sparsemax weights: the bound regularised by their squared norm; far worse sources get none.

    The objective is min over alpha on the simplex of <g, alpha> + ||alpha||_2^2 / (2 gamma) with g = risks + mu gaps;
    alpha = sparsemax(-gamma g) attains it (Martins and Astudillo 2016, "From Softmax to Sparsemax"). DARN's sharpmax
    has the norm, not its square.
    """

    name = "sparsemax"
    stacked = ("gamma",)

    gamma: Positive = 1.0

    def of(self, g: Tensor, state: Tensor) -> Aggregate:
        """The bound at its minimum over alpha."""
        # By the envelope theorem no gradient need pass through the projection.
        weights = sparsemax(-self.gamma * g.detach())
        norm = weights.square().sum(-1)
        return Aggregate(weights @ g + norm / (2 * self.gamma), weights, state)


@component
class TopK(OfBounds):
    """The mean of the `n` best sources.

    With g = risks + mu gaps it is min over alpha of <g, alpha> if no alpha_i exceeds 1 / n; for n = 1 only the best
    source, for n = k `uniform`. Sources tied for the last places share them, so the order of the sources does not
    matter. It is from no paper, but the simplest way to drop sources.
    """

    name = "topk"

    n: Count = 2

    def of(self, g: Tensor, state: Tensor) -> Aggregate:
        """The mean of the least bound terms; of all if there are fewer than `n`."""
        n = min(self.n, len(g))
        values = g.detach()
        last = values.sort().values[n - 1]
        better = (values < last).to(g.dtype)
        tied = (values == last).to(g.dtype)
        weights = (better + tied * (n - better.sum()) / tied.sum()) / n
        return Aggregate(weights @ g, weights, state)
