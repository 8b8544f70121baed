"""Estimates the size of paired differences, in addition to p-values, and the smallest that a test would find."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Any, SupportsFloat

import numpy as np
from numpy.typing import NDArray

from msda_bench.results.signed_rank import Reals, finite, walsh_cut
from msda_bench.results.summary import summarize

POWER = 0.8
"""The probability with which the smallest detectable difference is found."""
_MOST_LISTED = 500
"""Up to this many differences, all Walsh averages are listed."""
_SAMPLES, _AT_ONCE = 4_000, 1_000
_MOST_SAMPLED = 40
"""Beyond this many pairs the t approximation is within two percent of sampling."""


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


def paired_effect(differences: Iterable[SupportsFloat], alpha: float = 0.05, decimals: int = 9) -> Effect:
    """Estimates the size of paired differences.

    The interval is bounded by the k-th smallest and k-th largest Walsh average, with k from the exact null distribution
    of the signed-rank statistic of n untied differences (Hodges and Lehmann 1963; Hollander and Wolfe, section 3.3).
    Zeros count. With ties the interval covers at least 1 - alpha.

    Args:
        differences: one number per pair.
        alpha: 1 - the level of the interval.
        decimals: to which differences are compared, and the results rounded.

    Raises:
        ValueError: there are no differences, or one is NaN or infinite.
    """
    values = np.sort(finite(differences))
    if not len(values):
        raise ValueError("no differences to estimate an effect from")
    n, cut, summary = len(values), walsh_cut(len(values), alpha), summarize(values.tolist())
    last, signs = n * (n + 1) // 2 - 1, np.round(values, decimals)
    places = (last // 2, last - last // 2, *((cut - 1, last + 1 - cut) if cut else ()))

    def rounded(value: float) -> float:
        return round(value, decimals) + 0.0  # never -0.0

    below, above, *ends = _walsh_averages(values, places)
    low, high = map(rounded, ends) if ends else (None, None)
    return Effect(
        mean=rounded(summary.mean),
        standard_deviation=rounded(summary.standard_error * math.sqrt(n)) if n > 1 else None,
        median=rounded(float(np.median(values))),
        hodges_lehmann=rounded((below + above) / 2),
        low=low,
        high=high,
        wins=int((signs > 0).sum()),
        ties=int((signs == 0).sum()),
        losses=int((signs < 0).sum()),
    )


def _walsh_averages(ordered: Reals, places: Sequence[int]) -> list[float]:
    """The Walsh averages of ascending values at these places in sorted order, counted from 0."""
    if len(ordered) > _MOST_LISTED:
        return [_sought(ordered, place) for place in places]
    first, second = _pairs(len(ordered))
    averages = np.partition((ordered[first] + ordered[second]) / 2, sorted(set(places)))
    return [float(averages[place]) for place in places]


def _sought(ordered: Reals, place: int) -> float:
    """The smallest number that more than `place` Walsh averages do not exceed, by bisection, in little memory."""
    low, high, itself = float(ordered[0]), float(ordered[-1]), np.arange(len(ordered))
    while low < (middle := (low + high) / 2) < high:
        partners = np.searchsorted(ordered, 2 * middle - ordered, "right") - itself
        if np.maximum(partners, 0).sum() > place:
            high = middle
        else:
            low = middle
    return high


@lru_cache(maxsize=8)
def _pairs(n: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """The places of both differences of each Walsh average."""
    return np.triu_indices(n)


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
    cut = walsh_cut(n, level)
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
