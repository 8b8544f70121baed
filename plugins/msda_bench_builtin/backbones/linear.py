"""A linear model on the raw input."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from msda_bench.api import Backbone, Files, InputSpec, Network, Task, component
from msda_bench.functional import SparseRows


class _Raw(nn.Module):
    def __init__(self, *, bias_column: bool) -> None:
        super().__init__()
        self.bias_column = bias_column

    def forward(self, x: Tensor | SparseRows) -> Tensor:
        dense = x.to_dense() if isinstance(x, SparseRows) else x.flatten(1)
        if not self.bias_column:
            return dense
        return torch.cat([dense, dense.new_ones(len(dense), 1)], dim=1)


@component
class Linear(Backbone):
    """A linear predictor on the input itself.

    `bias_column` appends a constant 1 to the features, so that a discrepancy of the features sees their mean, as in the
    authors' synthetic regression; the predictor then needs no bias.
    """

    name = "linear"

    bias_column: bool = True

    def build(self, task: Task, input: InputSpec, files: Files | None = None) -> Network:
        """Features without parameters and one linear layer."""
        width = math.prod(input.shape) + self.bias_column
        return Network(
            _Raw(bias_column=self.bias_column), nn.Linear(width, task.outputs, bias=not self.bias_column), width
        )
