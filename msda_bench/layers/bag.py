"""A linear layer for bags of words."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor, nn

from msda_bench.functional import SparseRows

BagProduct: TypeAlias = Callable[[SparseRows, Tensor], Tensor]
"""Multiplies sparse rows (n, width) by a weight (width, outputs), giving (n, outputs)."""


def bag_product(x: SparseRows, weight: Tensor, *, sparse_gradient: bool = False) -> Tensor:
    """The product in plain torch; with `sparse_gradient` the weight's gradient holds only the rows that occur."""
    return nn.functional.embedding_bag(
        x.columns,
        weight,
        x.offsets,
        mode="sum",
        sparse=sparse_gradient,
        per_sample_weights=x.values,
        include_last_offset=True,
    )


class BagLinear(nn.Module):
    """x W + b with W of shape (width, outputs), for dense input (n, width) or `SparseRows`.

    Rows of the weight are words, so that a sparse batch reads and writes only the rows of words that occur. Initial
    values have the distribution of `torch.nn.Linear`.

    Attributes:
        product: multiplies sparse rows; the engine may replace it by a faster function.
    """

    def __init__(self, width: int, outputs: int) -> None:
        super().__init__()
        self.product: BagProduct = bag_product
        self.weight = nn.Parameter(torch.empty(width, outputs))
        self.bias = nn.Parameter(torch.empty(outputs))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws initial values from torch's global generator."""
        bound = 1 / math.sqrt(len(self.weight))
        nn.init.uniform_(self.weight, -bound, bound)
        nn.init.uniform_(self.bias, -bound, bound)

    def forward(self, x: Tensor | SparseRows) -> Tensor:
        """The product plus bias, (n, outputs) float32."""
        if isinstance(x, SparseRows):
            return self.product(x, self.weight) + self.bias
        return torch.addmm(self.bias, x, self.weight)
