"""Layers that draw from their run's own stream: their base, and dropout."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from msda_bench.functional import SparseRows, keep_mask


class StepKey(nn.Module):
    """Base of modules that draw random numbers in training.

    The engine gives each one in the network or the critic a fresh `key` before every phase of a step; what is drawn
    from it by `msda_bench.functional.uniform` is the same whether a run trains alone or in a stack. Until then it is
    zero. Two calls in one phase see one key.

    Attributes:
        key: (2,) int32.
    """

    key: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("key", torch.zeros(2, dtype=torch.int32), persistent=False)


def dropout(x: Tensor, key: Tensor, rate: float) -> Tensor:
    """Dropout of dense input by the mask of a (2,) int32 key."""
    index = torch.arange(x.numel(), dtype=torch.int32, device=x.device).view(x.shape)
    return x * keep_mask(key, index, rate) * (1 / (1 - rate))


class Dropout(StepKey):
    """Zeroes elements at `rate` in training and scales the others by 1 / (1 - rate).

    The mask is a pure function of the step's `key` and the element's position, so it is the same whether a run trains
    alone or in a stack, and for sparse rows the same as for the dense matrix that they stand for.

    Attributes:
        drop: how dense input is dropped; an engine may put a faster one in its place.
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate
        self.drop: Callable[[Tensor, Tensor, float], Tensor] = dropout

    def forward(self, x: Tensor | SparseRows) -> Tensor | SparseRows:
        """The same shape as `x`; of sparse rows, only the survivors are stored."""
        if not self.training or self.rate == 0:
            return x
        if isinstance(x, SparseRows):
            return self._sparse(x)
        return self.drop(x, self.key, self.rate)

    def _sparse(self, x: SparseRows) -> SparseRows:
        row = x.row_of()
        kept = keep_mask(self.key, (row * x.width + x.columns).to(torch.int32), self.rate)
        lengths = torch.zeros(len(x), dtype=torch.int64, device=row.device).index_add_(0, row, kept.long())
        offsets = torch.cat([x.offsets[:1], lengths.cumsum(0)])
        return SparseRows(x.columns[kept], x.values[kept] * (1 / (1 - self.rate)), offsets, x.width)
