"""How much one value of a row tells about another, such as a column about the domain."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
_BINS = 20
"""Of numbers with more different values."""


def share_told(codes: Array, of: Array) -> float:
    """The share of rows whose class the other rows with the same code name, by the most of them.

    A row has no vote on itself, so that codes which mean nothing tell no more than the most frequent class does. Where
    no other row has the code, or votes are tied, the most frequent class is named.

    Args:
        codes: (n,) whole numbers from 0; see `codes_of`.
        of: (n,) whole numbers from 0, the classes.
    """
    if not len(of):
        return 0.0
    _, place, counts = np.unique(codes, return_inverse=True, return_counts=True)
    votes = np.zeros((len(counts), int(of.max()) + 1), np.int32)
    np.add.at(votes, (place.reshape(-1), of), 1)
    own = votes[place.reshape(-1), of]
    second, most = _two_largest(votes)[:, place.reshape(-1)]
    rival = np.where(own == most, second, most)
    is_usual = of == np.bincount(of).argmax()
    return float(np.where(own - 1 == rival, is_usual, own - 1 > rival).mean())


def _two_largest(votes: Array) -> Array:
    """The second largest and the largest number of each row, (2, n)."""
    if votes.shape[1] == 1:
        return np.stack([np.zeros(len(votes), np.int32), votes[:, 0]])
    return np.partition(votes, -2, axis=1)[:, -2:].T


def codes_of(values: Array) -> Array:
    """Numbers (n,) as codes: of more than twenty different ones twenty bins that hold equally many; NaN has its own."""
    known = np.isfinite(values)
    different = np.unique(values[known])
    edges = different
    if len(different) > _BINS:
        edges = np.unique(np.quantile(values[known], np.linspace(0, 1, _BINS + 1)[1:-1]))
    codes = np.searchsorted(edges, np.where(known, values, 0), side="right")
    return np.where(known, codes, len(edges) + 1)
