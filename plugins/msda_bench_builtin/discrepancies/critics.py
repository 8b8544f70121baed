"""k small networks side by side, as one batched product a layer."""

from __future__ import annotations

import math
from itertools import pairwise

import torch
from torch import Tensor, nn


class _StackedLinear(nn.Module):
    """k linear layers, each with its own input: (k, n, inputs) to (k, n, outputs)."""

    def __init__(self, k: int, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(k, inputs, outputs))
        self.bias = nn.Parameter(torch.empty(k, 1, outputs))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        bound = 1 / math.sqrt(self.weight.shape[1])  # torch.nn.Linear's
        nn.init.uniform_(self.weight, -bound, bound)
        nn.init.uniform_(self.bias, -bound, bound)

    def forward(self, x: Tensor) -> Tensor:
        return torch.baddbmm(self.bias, x, self.weight)


def critics(k: int, inputs: int, hidden: tuple[int, ...]) -> nn.Sequential:
    """Critics side by side, with ReLU between layers: (k, n, inputs) to logits (k, n, 1)."""
    widths = [inputs, *hidden, 1]
    layers: list[nn.Module] = []
    for narrow, wide in pairwise(widths):
        layers += [_StackedLinear(k, narrow, wide), nn.ReLU()]
    return nn.Sequential(*layers[:-1])
