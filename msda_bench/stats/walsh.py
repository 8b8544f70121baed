"""Order statistics of the Walsh averages: the means of all pairs of some numbers, each with itself too."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

_BITS = 61
"""Sums of two numbers of so many bits fit into 64."""
_MOST_LISTED = 200
"""Up to so many numbers it is faster to list all sums than to search for one."""

Integers: TypeAlias = NDArray[np.int64]


def walsh_sums(ordered: Sequence[int], places: Sequence[int]) -> list[int]:
    """Twice the Walsh averages that stand at some places, counted from 0, in ascending order.

    Args:
        ordered: n ascending integers. Beyond 61 bits their lowest are rounded off, fewer than a float would lose.
        places: at least 0 and less than n (n + 1) / 2.
    """
    dropped = max(0, max(abs(ordered[0]), abs(ordered[-1])).bit_length() - _BITS)
    half = 1 << dropped >> 1
    values = np.array([(number + half) >> dropped for number in ordered] if dropped else ordered, np.int64)
    found = _listed(values, places) if len(values) <= _MOST_LISTED else [_sought(values, place) for place in places]
    return [number << dropped for number in found]


def _listed(values: Integers, places: Sequence[int]) -> list[int]:
    first, second = _pairs(len(values))
    sums = values[first] + values[second]
    sums.partition(sorted(set(places)))
    return [sums[place].item() for place in places]


@lru_cache(maxsize=64)
def _pairs(n: int) -> tuple[NDArray[Any], NDArray[Any]]:
    return np.triu_indices(n)


def _sought(values: Integers, place: int) -> int:
    """The smallest sum that more than `place` sums do not exceed, by bisection, in n log n a step and little memory."""
    low, high = 2 * int(values[0]), 2 * int(values[-1])
    itself = np.arange(len(values))
    while low < high:
        middle = (low + high) // 2
        partners = np.searchsorted(values, middle - values, "right") - itself
        if np.maximum(partners, 0).sum().item() > place:
            high = middle
        else:
            low = middle + 1
    return low
