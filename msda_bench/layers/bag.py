"""A linear layer for bags of words."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from msda_bench.functional import SparseRows


class BagLinear(nn.Module):
    """x W + b with W of shape (width, outputs), for dense input (n, width) or `SparseRows`.

    The weight's rows are the words, so that a sparse batch reads and writes only the rows of words that occur. Its
    initial values are those of `torch.nn.Linear`.

    Attributes:
        sparse_gradient: whether sparse input gives the weight a sparse gradient; the engine turns it on when the
            optimiser can update just the rows that occur.
    """

    def __init__(self, width: int, outputs: int) -> None:
        super().__init__()
        self.sparse_gradient = False
        bound = 1 / math.sqrt(width)
        self.weight = nn.Parameter(torch.empty(width, outputs).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(outputs).uniform_(-bound, bound))

    def forward(self, x: Tensor | SparseRows) -> Tensor:
        """(n, outputs) float32."""
        if isinstance(x, SparseRows):
            return self._bag(x) + self.bias
        return torch.addmm(self.bias, x, self.weight)

    def _bag(self, x: SparseRows) -> Tensor:
        return nn.functional.embedding_bag(
            x.columns,
            self.weight,
            x.offsets,
            mode="sum",
            sparse=self.sparse_gradient,
            per_sample_weights=x.values,
            include_last_offset=True,
        )
