"""Means with their errors, the smallest difference that a test would find, and mean gains over data sets."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from msda_bench.results.signed_rank import Reals, walsh_cut

POWER = 0.8
"""The probability with which the smallest detectable difference is found."""
_SAMPLES = 4_000
_MOST_SAMPLED = 40
"""Beyond this many pairs the t approximation is within two percent of sampling."""
_pairs = lru_cache(maxsize=8)(np.triu_indices)
"""The places of both differences of each Walsh average."""


class Summary(NamedTuple):
    """Summary statistics; NaN where there are too few numbers."""

    n: int
    mean: float
    standard_error: float

    def allowing(self, overlap: float) -> Summary:
        """The same mean, with a standard error that allows for the test examples that seeds share.

        The variance of the mean is (1 / n + overlap) s^2 (Nadeau and Bengio 2003, Machine Learning 52:239-281), where
        `overlap` is n_test / n_train of the target's examples; 0 where splits share none.
        """
        return self._replace(standard_error=self.standard_error * math.sqrt(1 + self.n * overlap))

    def interval(self, alpha: float) -> tuple[float, float]:
        """The interval of the mean of level 1 - alpha; NaN without a standard error."""
        if self.n <= 1:
            return math.nan, math.nan
        half = _quantile(self.n - 1, 1 - alpha / 2) * self.standard_error
        return self.mean - half, self.mean + half


def mean_of(values: Iterable[float]) -> float:
    """The mean, whose sum is rounded once, so that the order does not matter; NaN without values."""
    numbers = list(values)
    if not numbers:
        return math.nan
    return math.fsum(numbers) / len(numbers)


def tied(value: float) -> float:
    """The value to twelve significant digits, so that means that are equal as fractions are equal."""
    return float(f"{value:.12g}")


def summarize(values: Iterable[float]) -> Summary:
    """Computes the mean and its standard error."""
    numbers = list(values)
    n, mean = len(numbers), mean_of(numbers)
    if n < 2:  # noqa: PLR2004 - one number has no spread
        return Summary(n, mean, math.nan)
    if min(numbers) == max(numbers):  # their mean may differ from them by rounding
        return Summary(n, mean, 0.0)
    spread = math.hypot(*(number - mean for number in numbers))
    return Summary(n, mean, spread / math.sqrt(n * (n - 1)))


@lru_cache(maxsize=256)
def detectable_shift(n: int, level: float) -> float | None:
    """The smallest shift of n normal differences, in standard deviations, that the test finds with probability 0.8.

    The two-sided signed-rank test at this level finds a positive shift where the lower end of the Hodges-Lehmann
    interval, a Walsh average, lies above zero. Shifting the differences shifts this end as much, so the smallest shift
    is a quantile of the negated end over samples of unshifted differences. These come from a counter-based stream, the
    same on every machine. For many pairs it is Student's approximation at the test's asymptotic efficiency, 3 / pi.

    Returns:
        The shift; None if so few pairs cannot be significant at this level.
    """
    if 0.5**n > level / 2:
        return None
    if n > _MOST_SAMPLED:
        quantiles = _student(1 - level / 2, n - 1) + _student(POWER, n - 1)
        return quantiles / math.sqrt(3 / math.pi * n)
    return float(np.quantile(_negated_ends(n, level), POWER))


@lru_cache(maxsize=256)
def _negated_ends(n: int, level: float) -> Reals:
    """The lower ends of the Hodges-Lehmann intervals of samples of n normal differences, negated."""
    cut = walsh_cut(n, level)
    raw: NDArray[np.uint64] = np.random.Philox(key=n).random_raw((4, 2, _SAMPLES // 4, n))
    uniform = ((raw >> np.uint64(11)) + 0.5) / 2.0**53
    radius, angle = uniform.swapaxes(0, 1).reshape(2, _SAMPLES, n)
    normal = np.sqrt(-2 * np.log(radius)) * np.cos(2 * np.pi * angle)  # Box and Muller 1958
    first, second = _pairs(n)
    walsh = (normal[:, first] + normal[:, second]) / 2
    return -np.partition(walsh, cut - 1, axis=1)[:, cut - 1]


def _student(share: float, df: int) -> float:
    """A quantile of Student's t, by the first terms of its expansion (Cornish and Fisher 1938)."""
    z = NormalDist().inv_cdf(share)
    return z + (z**3 + z) / (4 * df)


class MeanGain(NamedTuple):
    """A mean over experiments of equal weight, its standard error, and Welch's and Satterthwaite's degrees of freedom.

    The variances of the gains add up, since experiments have independent seeds.
    """

    mean: float
    error: float
    freedom: float

    @classmethod
    def of(cls, gains: Sequence[tuple[float, float, int]]) -> MeanGain:
        """The mean of gains, each with its standard error and number of seeds."""
        mean = sum(gain for gain, _, _ in gains) / len(gains)
        total = sum(error**2 for _, error, _ in gains)
        if total == 0 or math.isnan(total):
            return cls(mean, total, math.nan)
        weighed = sum((error**2) ** 2 / (n - 1) for _, error, n in gains)
        return cls(mean, math.sqrt(total) / len(gains), total**2 / weighed)

    def interval(self, alpha: float) -> tuple[float, float]:
        """The interval of level 1 - alpha; without degrees of freedom the error is 0 or NaN, and so is its width."""
        half = self.error
        if not math.isnan(self.freedom):
            half *= _quantile(self.freedom, 1 - alpha / 2)
        return self.mean - half, self.mean + half


def _quantile(freedom: float, share: float) -> float:
    """A quantile of Student's t."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, share))
