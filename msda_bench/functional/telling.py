"""How much one value of a row tells about another, such as a column about the domain, or the row before about it."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
_FEWEST = 5
"""Rows with the same code, from which on it tells something."""
_BINS = 20
"""The number of bins for columns with more different values."""


class Told(NamedTuple):
    """The share of rows whose class something tells, and the share that is right without it."""

    share: float
    usual: float

    def exceeds(self, least: float) -> bool:
        """Whether it tells more than `least`: 0 is no more than is right without it, 1 is every row."""
        return self.share - self.usual > least * (1 - self.usual)


def told_by(codes: Array, of: Array) -> Told:
    """How many classes `of` rows (n,) these codes (n,) tell, beside the most frequent class; see `share_told`."""
    usual = float(np.bincount(of).max() / len(of))
    return Told(share_told(codes, of), usual)


def told_by_neighbours(of: Array) -> Told:
    """How many rows (n,) have the class of the row before, beside those that have it in a random order."""
    shares = np.bincount(of) / len(of)
    same = (of[1:] == of[:-1]).mean()
    return Told(float(same), float((shares**2).sum()))


def order_told(values: Array, of: Array, places: Array) -> float:
    """How well numbers put the rows of each place, such as a domain, in the order of their labels.

    That is the size of Spearman's rank correlation in each place, on average over rows. Rows without a number are left
    out. A place where the numbers or the labels are all equal counts as 0.

    Args:
        values: (n,) numbers, NaN where one is missing.
        of: (n,) labels, also numbers.
        places: (n,) whole numbers from 0.
    """
    known = np.isfinite(values)
    total = 0.0
    for place in np.unique(places[known]):
        mine = known & (places == place)
        x = values[mine]
        y = of[mine]
        if np.ptp(x) and np.ptp(y):
            correlation = np.corrcoef(_ranks(x), _ranks(y))[0, 1]
            total += len(x) * abs(correlation)
    return float(total / max(1, known.sum()))


def _ranks(values: Array) -> Array:
    """The ranks of numbers (n,), equal ones with their mean rank."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2
    return np.asarray(ranks[place.reshape(-1)])


def share_told(codes: Array, of: Array) -> float:
    """The share of rows whose class is the most frequent one among the rows with the same code.

    A code of fewer than five rows tells nothing: there, and where two classes are equally frequent, the most frequent
    class of all rows is named.

    Args:
        codes: (n,) whole numbers from 0; see `codes_of`.
        of: (n,) whole numbers from 0, the classes.
    """
    if not len(of):
        return 0.0
    _, place, counts = np.unique(codes, return_inverse=True, return_counts=True)
    place = place.reshape(-1)
    votes = np.zeros((len(counts), int(of.max()) + 1), np.int32)
    np.add.at(votes, (place, of), 1)
    most = votes.max(1)
    tells = (counts >= _FEWEST) & ((votes == most[:, None]).sum(1) == 1)
    is_usual = of == np.bincount(of).argmax()
    is_most = votes[place, of] == most[place]
    return float(np.where(tells[place], is_most, is_usual).mean())


def codes_of(values: Array) -> Array:
    """Numbers (n,) as codes: of more than twenty different ones twenty bins that hold equally many; NaN has its own."""
    known = np.isfinite(values)
    different = np.unique(values[known])
    edges = different
    if len(different) > _BINS:
        between_bins = np.linspace(0, 1, _BINS + 1)[1:-1]
        edges = np.unique(np.quantile(values[known], between_bins))
    codes = np.searchsorted(edges, np.where(known, values, 0), side="right")
    return np.where(known, codes, len(edges) + 1)
