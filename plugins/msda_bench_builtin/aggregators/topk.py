"""The mean of the best sources."""

from __future__ import annotations

from torch import Tensor

from msda_bench.api import Aggregate, Aggregator, Count, component


@component
class TopK(Aggregator):
    """The mean of the `n` best sources.

    With g = risks + mu gaps it is min over alpha of <g, alpha> if no alpha_i exceeds 1 / n; for n = 1 only the best
    source, for n = k `uniform`. Sources tied for the last places share them, so the order of the sources does not
    matter. It is from no paper, but the simplest way to drop sources.
    """

    name = "topk"

    n: Count = 2

    def __call__(self, risks: Tensor, gaps: Tensor, mu: float | Tensor, state: Tensor) -> Aggregate:
        """The mean of the least bound terms; of all if there are fewer than `n`."""
        g = risks + mu * gaps
        n = min(self.n, len(g))
        values = g.detach()
        last = values.sort().values[n - 1]
        better, tied = (values < last).to(g.dtype), (values == last).to(g.dtype)
        weights = (better + tied * (n - better.sum()) / tied.sum()) / n
        return Aggregate(weights @ g, weights, state)
