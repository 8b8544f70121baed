"""Random views of examples: vectors and bags of words with entries dropped."""

from __future__ import annotations

from typing import TypeVar

import torch
from torch import Tensor

from msda_bench.functional.random import keep_mask
from msda_bench.functional.rows import SparseRows

_X = TypeVar("_X", Tensor, SparseRows)


def drop_entries(x: _X, key: Tensor, rate: float) -> _X:
    """Sets each entry to zero with probability `rate`, without scaling the others.

    Args:
        x: (n, ...) float32, or sparse rows. Dense and sparse input lose identical entries.
        key: (2,) int32.
        rate: in [0, 1).

    Returns:
        Input of the type and shape of `x`; sparse rows store only the remaining entries.
    """
    if not isinstance(x, SparseRows):
        index = torch.arange(x.numel(), dtype=torch.int32, device=x.device).view(x.shape)
        return x * keep_mask(key, index, rate)
    row = x.row_of()
    kept = keep_mask(key, (row * x.width + x.columns).to(torch.int32), rate)
    lengths = torch.zeros(len(x), dtype=torch.int64, device=row.device).index_add_(0, row, kept.long())
    offsets = torch.cat([x.offsets[:1], lengths.cumsum(0)])
    return SparseRows(x.columns[kept], x.values[kept], offsets, x.width)
