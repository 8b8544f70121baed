"""Estimates the size of paired differences, in addition to p-values."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from msda_bench.results.signed_rank import Number, scaled_integers, walsh_cut
from msda_bench.results.summary import summarize

_BITS = 61
"""The sum of two integers of this many bits fits into 64 bits."""
_MOST_LISTED = 200
"""Up to this many numbers, listing all sums is faster than searching for one."""
POWER = 0.8
"""The probability with which the smallest detectable difference is found."""
_SAMPLES, _AT_ONCE = 4_000, 1_000
_MOST_SAMPLED = 40
"""Beyond this many pairs the t approximation is within two percent of sampling."""

Integers: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class Effect:
    """The size of paired differences, in their own unit.

    Attributes:
        mean: their mean.
        standard_deviation: of the sample, with n - 1 in its denominator; None for a single difference.
        median: their median.
        hodges_lehmann: the median of the Walsh averages: the means of all pairs, each difference with itself included.
        low: lower end of the interval of the Hodges-Lehmann estimate; None if there are too few differences.
        high: upper end of this interval.
        wins: the number of positive differences.
        ties: the number of zeros.
        losses: the number of negative differences.
    """

    mean: float
    standard_deviation: float | None
    median: float
    hodges_lehmann: float
    low: float | None
    high: float | None
    wins: int
    ties: int
    losses: int


def paired_effect(differences: Iterable[Number], alpha: float = 0.05, unit: Fraction = Fraction(1)) -> Effect:
    """Estimates the size of paired differences.

    The interval is bounded by the k-th smallest and k-th largest Walsh average, with k from the exact null distribution
    of the signed-rank statistic of n untied differences (Hodges and Lehmann 1963; Hollander and Wolfe, section 3.3).
    Zeros count. With ties the interval covers at least 1 - alpha.

    Args:
        differences: one number per pair.
        alpha: 1 - the level of the interval.
        unit: the unit of the differences, by which the mean, the median, the estimate and the interval are multiplied.

    Raises:
        ValueError: there are no differences, or one is NaN or infinite.
    """
    numbers, scale = scaled_integers(differences)
    if not numbers:
        raise ValueError("no differences to estimate an effect from")
    steps, scale = unit.numerator, unit.denominator * scale
    ordered = sorted(steps * number for number in numbers)
    n, losses, not_won = len(ordered), bisect_left(ordered, 0), bisect_right(ordered, 0)
    low, middle, high = _walsh_averages(ordered, scale, walsh_cut(n, Fraction(alpha)))
    return Effect(
        mean=sum(ordered) / (n * scale),
        standard_deviation=summarize(ordered, Fraction(1, scale)).standard_error * math.sqrt(n) if n > 1 else None,
        median=(ordered[n // 2] + ordered[-(n // 2) - 1]) / (2 * scale),
        hodges_lehmann=middle,
        low=low,
        high=high,
        wins=n - not_won,
        ties=not_won - losses,
        losses=losses,
    )


def _walsh_averages(ordered: Sequence[int], scale: int, cut: int) -> tuple[float | None, float, float | None]:
    """The cut-th smallest Walsh average, the median of all, and the cut-th largest."""
    last = len(ordered) * (len(ordered) + 1) // 2 - 1
    ends = (cut - 1, last + 1 - cut) if cut else ()
    below, above, *found = walsh_sums(ordered, (last // 2, last - last // 2, *ends))
    low, high = (end / (2 * scale) for end in found) if cut else (None, None)
    return low, (below + above) / (4 * scale), high


def walsh_sums(ordered: Sequence[int], places: Sequence[int]) -> list[int]:
    """Twice the Walsh averages of ascending integers, at these places in sorted order, counted from 0.

    The lowest bits of integers beyond 61 bits are rounded off; a float would lose more.
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
    """The smallest sum that more than `place` sums do not exceed, by bisection: n log n per step, and little memory."""
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


@lru_cache(maxsize=256)
def detectable_shift(n: int, level: float) -> float | None:
    """The smallest shift of n normal differences, in standard deviations, that the test finds with probability `POWER`.

    The two-sided signed-rank test at this level finds a positive shift where the lower end of the Hodges-Lehmann
    interval, a Walsh average, lies above zero. Shifting the differences shifts it as much, so the shift sought is a
    quantile of this end, negated, over samples of unshifted differences. These come from a counter-based stream, the
    same on every machine. For many pairs it is Student's approximation at the test's asymptotic efficiency, 3 / pi.

    Returns:
        The shift; None if so few pairs cannot be significant at this level.
    """
    cut = walsh_cut(n, Fraction(level))
    if not cut:
        return None
    if n > _MOST_SAMPLED:
        return (_student(1 - level / 2, n - 1) + _student(POWER, n - 1)) / math.sqrt(3 / math.pi * n)
    first, second = _pairs(n)
    stream, ends = np.random.Philox(key=n), []
    for _ in range(_SAMPLES // _AT_ONCE):
        raw: NDArray[np.uint64] = stream.random_raw((2, _AT_ONCE, n))
        radius, angle = ((raw >> np.uint64(11)) + 0.5) / 2.0**53
        normal = np.sqrt(-2 * np.log(radius)) * np.cos(2 * np.pi * angle)  # Box and Muller 1958
        walsh = (normal[:, first] + normal[:, second]) / 2
        ends.append(np.partition(walsh, cut - 1, axis=1)[:, cut - 1])
    return float(np.quantile(-np.concatenate(ends), POWER))


def _student(share: float, df: int) -> float:
    """A quantile of Student's t, by the first terms of its expansion (Cornish and Fisher 1938)."""
    z = NormalDist().inv_cdf(share)
    return z + (z**3 + z) / (4 * df)
