"""First layers of networks: a linear one for bags of words, and the normalisation of colours."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch
from torch import Tensor, nn

from msda_bench.functional import SparseRows

BagProduct: TypeAlias = Callable[[SparseRows, Tensor], Tensor]
"""Multiplies sparse rows (n, width) by a weight (width, outputs), giving (n, outputs)."""
MEAN = (0.485, 0.456, 0.406)
DEVIATION = (0.229, 0.224, 0.225)


def bag_product(x: SparseRows, weight: Tensor) -> Tensor:
    """The product in plain torch."""
    return nn.functional.embedding_bag(
        x.columns,
        weight,
        x.offsets,
        mode="sum",
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


class Normalise(nn.Module):
    """Subtracts each channel's mean and divides by its standard deviation; by default those of ImageNet.

    Maps (n, channels, height, width) float32 in [0, 1] to float32 of equal shape.
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, mean: Sequence[float] = MEAN, deviation: Sequence[float] = DEVIATION) -> None:
        super().__init__()
        for name, values in (("mean", mean), ("deviation", deviation)):
            self.register_buffer(name, torch.tensor([*values]).view(-1, 1, 1), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """The normalised images, with the shape of `x`."""
        return (x - self.mean) / self.deviation
