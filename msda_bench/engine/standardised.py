"""Inputs standardised domain by domain, each by its own training rows: an adaptation that needs no label."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from msda_bench.api import Array, Inputs
from msda_bench.engine.tensors import refuse_texts
from msda_bench.functional.features import by_channel, divisor, known_moments

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_AXES = ("row", "column")


@dataclass(frozen=True, eq=False)
class Scale:
    """The mean and the standard deviation of each column over the training rows of one domain.

    Images and signals have one of each for a channel, their first axis, in which numbers that are missing do not count.
    The words of a bag keep their means, since the bag would not stay sparse. A constant column is not divided.

    Attributes:
        mean: (columns,) float64; of a sparse matrix, of its first `beside` columns alone.
        deviation: (columns,) float64.
        beside: how many of the first columns of a sparse matrix are no words.
        mask: how many of the last channels say which numbers are known (`InputSpec.mask`).
    """

    mean: Array
    deviation: Array
    beside: int = 0
    mask: int = 0

    @classmethod
    def of(cls, rows: Inputs, beside: int = 0, mask: int = 0) -> Scale:
        """The scale of the training rows of one domain; numbers that are not finite do not count.

        Raises:
            DataError: the rows are no numbers.
        """
        if not isinstance(rows, np.ndarray):
            first = cls._of_columns(rows[:, :beside].toarray())
            of_words = _of_words(rows[:, beside:])
            deviation = np.concatenate([first.deviation, of_words])
            return cls(first.mean, deviation, beside)
        refuse_texts(rows)
        if not mask:
            return cls._of_columns(_columns(rows))
        with_gaps = _with_gaps(rows, mask)
        return replace(cls._of_columns(_columns(with_gaps)), mask=mask)

    @classmethod
    def _of_columns(cls, columns: Array) -> Scale:
        mean, variance = known_moments(columns.astype(np.float64))
        return cls(mean, divisor(variance, mean))

    def __call__(self, rows: Inputs) -> Inputs:
        """The domain's rows, of training or test, standardised: float32 of the same shape; what is missing is 0."""
        if not isinstance(rows, np.ndarray):
            return self._of_bags(rows)
        if not len(rows):
            return rows.astype(np.float32)
        if not self.mask:
            return self._moved(rows)
        known = rows[:, -self.mask :]
        moved = self._moved(rows[:, : -self.mask])
        there = np.where(known > 0, moved, 0)
        return np.concatenate([there, known], axis=1, dtype=np.float32)

    def _moved(self, rows: Array) -> Array:
        columns = _columns(rows)
        with np.errstate(over="ignore"):  # of a test row that is far off
            moved = ((columns - self.mean) / self.deviation).astype(np.float32)
        if rows.ndim <= len(_AXES):
            return moved.reshape(rows.shape)
        by_row = moved.reshape(len(rows), -1, rows.shape[1])
        by_channel_again = np.moveaxis(by_row, 1, 2)
        return np.ascontiguousarray(by_channel_again).reshape(rows.shape)

    def _of_bags(self, rows: csr_matrix) -> csr_matrix:
        from scipy.sparse import csr_matrix, diags_array, hstack

        beside = self.beside
        scale = Scale(self.mean, self.deviation[:beside])
        columns = scale(rows[:, :beside].toarray())
        words = rows[:, beside:] @ diags_array(1 / self.deviation[beside:])
        both = hstack([csr_matrix(columns), words], format="csr")
        return csr_matrix(both, dtype=np.float32)


def _columns(rows: Array) -> Array:
    """Rows (n, columns) as they are, examples with several axes as (n * positions, channels); float64."""
    if rows.ndim > len(_AXES):
        return by_channel(rows)
    return rows.astype(np.float64).reshape(len(rows), -1)


def _with_gaps(rows: Array, mask: int) -> Array:
    """The channels of numbers, NaN where one is missing."""
    numbers = rows[:, :-mask]
    is_known = rows[:, -mask:] > 0
    return np.where(is_known, numbers, np.nan)


def _of_words(words: csr_matrix) -> Array:
    """The divisor of each column of a sparse matrix."""
    rows, width = words.shape
    values = words.astype(np.float64)
    values.sum_duplicates()
    count = max(1, rows)
    mean = np.bincount(values.indices, values.data, width) / count
    residuals = values.data - mean[values.indices]
    squares = np.bincount(values.indices, residuals**2, width)
    absent = rows - np.bincount(values.indices, minlength=width)
    variance = (squares + absent * mean**2) / count
    return divisor(variance, mean)
