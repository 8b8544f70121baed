"""Other views of examples: vectors and bags of words with some of their entries gone."""

from __future__ import annotations

from typing import TypeVar

import torch
from torch import Tensor

from msda_bench.functional.random import keep_mask
from msda_bench.functional.rows import SparseRows

_X = TypeVar("_X", Tensor, SparseRows)


def drop_entries(x: _X, key: Tensor, rate: float) -> _X:
    """The examples with each entry set to zero at `rate`; for bags of words, words left out. Nothing is scaled.

    Args:
        x: (n, ...) float32, or sparse rows, of which just the survivors are stored; the same entries go of either.
        key: (2,) int32.
        rate: in [0, 1).
    """
    if not isinstance(x, SparseRows):
        index = torch.arange(x.numel(), dtype=torch.int32, device=x.device).view(x.shape)
        return x * keep_mask(key, index, rate)
    row = x.row_of()
    kept = keep_mask(key, (row * x.width + x.columns).to(torch.int32), rate)
    lengths = torch.zeros(len(x), dtype=torch.int64, device=row.device).index_add_(0, row, kept.long())
    offsets = torch.cat([x.offsets[:1], lengths.cumsum(0)])
    return SparseRows(x.columns[kept], x.values[kept], offsets, x.width)
