"""Inputs standardised domain by domain, each by its own training rows: an adaptation that needs no label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from msda_bench.api import Array, Inputs
from msda_bench.engine.tensors import refuse_texts

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_ROUNDING = 1e-12
"""Numbers that deviate by less than this share of their mean are equal but for rounding."""
_AXES = ("row", "column")


@dataclass(frozen=True, eq=False)
class Scale:
    """The mean and the standard deviation of each column over the training rows of one domain.

    Images and signals have one of each for a channel, their first axis. The words of a bag keep their means, since the
    bag would not stay sparse. A constant column is not divided.

    Attributes:
        mean: (columns,) float64; of a sparse matrix, of its first `beside` columns alone.
        deviation: (columns,) float64.
        beside: how many of the first columns of a sparse matrix are no words.
    """

    mean: Array
    deviation: Array
    beside: int = 0

    @classmethod
    def of(cls, rows: Inputs, beside: int = 0) -> Scale:
        """Of the training rows of one domain; numbers that are not finite do not count.

        Raises:
            DataError: the rows are no numbers.
        """
        if not isinstance(rows, np.ndarray):
            dense = cls.of(rows[:, :beside].toarray())
            return cls(dense.mean, np.concatenate([dense.deviation, _of_words(rows[:, beside:])]), beside)
        refuse_texts(rows)
        columns = _by_channel(rows)
        known = np.isfinite(columns)
        count = np.maximum(known.sum(0), 1)
        mean = np.where(known, columns, 0).sum(0) / count
        squares = np.where(known, columns - mean, 0) ** 2
        return cls(mean, _divisor(squares.sum(0) / count, mean))

    def __call__(self, rows: Inputs) -> Inputs:
        """The domain's rows, of training or test, standardised: float32 of the same shape."""
        if not isinstance(rows, np.ndarray):
            return self._of_bags(rows)
        columns = _by_channel(rows)
        with np.errstate(over="ignore"):  # of a test row that is far off
            moved = ((columns - self.mean) / self.deviation).astype(np.float32)
        if rows.ndim <= len(_AXES):
            return moved.reshape(rows.shape)
        by_row = moved.reshape(len(rows), -1, rows.shape[1])
        return np.ascontiguousarray(np.moveaxis(by_row, 1, 2)).reshape(rows.shape)

    def _of_bags(self, rows: csr_matrix) -> csr_matrix:
        from scipy.sparse import csr_matrix, diags_array, hstack

        dense = Scale(self.mean, self.deviation[: self.beside])(rows[:, : self.beside].toarray())
        words = rows[:, self.beside :] @ diags_array(1 / self.deviation[self.beside :])
        return csr_matrix(hstack([csr_matrix(dense), words], format="csr"), dtype=np.float32)


def _by_channel(rows: Array) -> Array:
    """Rows (n, columns) as they are, examples with several axes as (n * positions, channels); float64."""
    wide = rows.astype(np.float64)
    if rows.ndim <= len(_AXES):
        return wide.reshape(len(rows), -1)
    channels = rows.shape[1]
    by_row = np.moveaxis(wide.reshape(len(rows), channels, -1), 1, 2)
    return cast("Array", by_row.reshape(-1, channels))


def _of_words(words: csr_matrix) -> Array:
    """What each column of a sparse matrix is divided by."""
    rows, width = words.shape
    values = words.astype(np.float64)
    values.sum_duplicates()
    count = max(1, rows)
    mean = np.bincount(values.indices, values.data, width) / count
    squares = np.bincount(values.indices, (values.data - mean[values.indices]) ** 2, width)
    absent = rows - np.bincount(values.indices, minlength=width)
    return _divisor((squares + absent * mean**2) / count, mean)


def _divisor(variance: Array, mean: Array) -> Array:
    """The standard deviation of each column; 1 if it is constant."""
    deviation = np.sqrt(variance)
    return np.where(deviation > _ROUNDING * abs(mean), deviation, 1)
