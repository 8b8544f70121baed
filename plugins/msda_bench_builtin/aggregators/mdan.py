"""MDAN's two forms: the log-sum-exp of the sources' bounds, and the largest."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from msda_bench.api import Aggregate, Aggregator, Positive, component
from msda_bench_builtin.aggregators.bounds import OfBounds


@component
class LogSumExp(OfBounds):
    """MDAN, soft: log-sum-exp of the bound terms; the worst source counts most.

    The objective is log(sum_i exp(gamma g_i)) / gamma with g = risks + mu gaps (Zhao et al. 2018, equation 5), whose
    gradient weights the sources by alpha = softmax(gamma g).
    """

    name = "logsumexp"
    stacked = ("gamma",)

    gamma: Positive = 10.0

    def of(self, g: Tensor, state: Tensor) -> Aggregate:
        """A smooth maximum of the bound terms."""
        scaled = self.gamma * g
        # An infinite risk takes all the weight; the softmax of infinity would be NaN.
        largest = torch.finfo(scaled.dtype).max
        weights = torch.softmax(scaled.detach().clamp(max=largest), dim=-1)
        return Aggregate(torch.logsumexp(scaled, dim=-1) / self.gamma, weights, state)


@component
class Hardmax(Aggregator):
    """MDAN, hard: only the worst source.

    `form` selects the bound: "bound" is max_i (risk_i + mu gap_i) (Zhao et al. 2018, equation 4); "code" is that of
    their code, max_i risk_i + mu min_i gap_i, meant for `d_A` with `sign: code`. Tied sources share the weight equally,
    so the order of the sources does not matter.
    """

    name = "hardmax"

    form: Literal["bound", "code"] = "bound"

    def __call__(
        self,
        risks: Tensor,
        gaps: Tensor,
        mu: float | Tensor,
        state: Tensor,
    ) -> Aggregate:
        """The largest bound term; in the form "code" the weights are those of the largest risk."""
        if self.form == "code":
            return Aggregate(risks.amax(-1) + mu * gaps.amin(-1), _share_of_largest(risks), state)
        g = risks + mu * gaps
        return Aggregate(g.amax(-1), _share_of_largest(g), state)


def _share_of_largest(values: Tensor) -> Tensor:
    largest = (values == values.amax(-1, keepdim=True)).to(values.dtype)
    return torch.nn.functional.normalize(largest, p=1.0, dim=-1)
