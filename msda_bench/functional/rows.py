"""Rows of a sparse matrix, random views of examples with entries dropped, and the reversal of a gradient."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

from msda_bench.functional.random import keep_mask


@dataclass(frozen=True, eq=False)
class SparseRows:
    """n rows of a sparse (n, width) matrix in CSR form.

    Attributes:
        columns: (nnz,) int64 column of each stored value, row by row.
        values: (nnz,) float32 stored values.
        offsets: (n + 1,) int64; row i occupies offsets[i]:offsets[i + 1].
        width: number of columns.
    """

    columns: Tensor
    values: Tensor
    offsets: Tensor
    width: int

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.offsets) - 1

    def __getitem__(self, rows: slice) -> SparseRows:
        """The rows of a slice."""
        return self.take(torch.arange(len(self), device=self.offsets.device)[rows])

    @staticmethod
    def concatenate(parts: Sequence[SparseRows]) -> SparseRows:
        """The rows of all parts, in order."""
        lengths = torch.cat([part.offsets.diff() for part in parts])
        offsets = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
        columns = torch.cat([part.columns for part in parts])
        values = torch.cat([part.values for part in parts])
        return SparseRows(columns, values, offsets, parts[0].width)

    def row_of(self) -> Tensor:
        """(nnz,) int64: the row of each stored value."""
        rows = torch.arange(len(self), device=self.offsets.device)
        return torch.repeat_interleave(rows, self.offsets.diff(), output_size=len(self.columns))

    def take(self, rows: Tensor) -> SparseRows:
        """The rows at the (m,) int64 positions, in this order."""
        starts = self.offsets[rows]
        lengths = self.offsets[rows + 1] - starts
        offsets = torch.zeros(len(rows) + 1, dtype=torch.int64, device=rows.device)
        torch.cumsum(lengths, 0, out=offsets[1:])
        shift = torch.repeat_interleave(starts - offsets[:-1], lengths)
        picked = shift + torch.arange(len(shift), device=rows.device)
        columns = self.columns.index_select(0, picked)
        values = self.values.index_select(0, picked)
        return SparseRows(columns, values, offsets, self.width)

    def to_dense(self) -> Tensor:
        """The rows as a dense (n, width) float32 tensor."""
        dense = torch.zeros(
            len(self),
            self.width,
            dtype=self.values.dtype,
            device=self.values.device,
        )
        return dense.index_put_((self.row_of(), self.columns), self.values, accumulate=True)


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
    places = kept.nonzero().squeeze(1)
    counts = torch.cat([x.offsets.new_zeros(1), kept.cumsum(0)])
    return SparseRows(
        x.columns.index_select(0, places),
        x.values.index_select(0, places),
        counts[x.offsets],
        x.width,
    )


def reverse_gradient(x: Tensor) -> Tensor:
    """Returns `x` and negates its gradient (Ganin et al. 2016, section 4.2).

    The value equals `x` bit for bit, because `2 x - x` is exact in floating point unless it overflows.
    """
    return 2 * x.detach() - x
