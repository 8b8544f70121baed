"""Estimates a method's mean gain over several data sets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from msda_bench.results.estimates import POWER


class MeanGain(NamedTuple):
    """A mean over experiments of equal weight, its standard error, and Welch's and Satterthwaite's degrees of freedom.

    The variances of the gains add up, since the seeds of one experiment say nothing of another's.
    """

    mean: float
    error: float
    freedom: float

    @classmethod
    def of(cls, gains: Sequence[tuple[float, float, int]]) -> MeanGain:
        """The mean of gains, each with its standard error and number of seeds."""
        mean, variances = sum(gain for gain, *_ in gains) / len(gains), [error**2 for _, error, _ in gains]
        total: float = sum(variances)
        if total == 0 or math.isnan(total):
            return cls(mean, total, math.nan)
        weighed = sum(variance**2 / (n - 1) for variance, (*_, n) in zip(variances, gains, strict=True))
        return cls(mean, math.sqrt(total) / len(gains), total**2 / weighed)

    def half_width(self, alpha: float) -> float:
        """Half the 1 - alpha interval, by Student's t."""
        return self.error * _student(self.freedom, 1 - alpha / 2) if self.is_tested else self.error

    @property
    def is_tested(self) -> bool:
        """Whether there is a spread to test by."""
        return not math.isnan(self.freedom)

    def tests(self, margin: float | None) -> dict[str, float]:
        """The p-values of t tests, as `margin_tests` has them by signed ranks."""

        def p_above(mean: float, bound: float) -> float:
            from scipy.special import stdtr

            return float(stdtr(self.freedom, (bound - mean) / self.error))

        if not self.is_tested:
            return {}
        p_values = {"p_two_sided": 2 * p_above(abs(self.mean), 0.0)}
        if margin is not None:
            both = (self.mean, -self.mean)
            p_values["p_beyond"] = min(1.0, 2 * min(p_above(mean, margin) for mean in both))
            p_values["p_equivalent"] = max(p_above(mean, -margin) for mean in both)
        return p_values

    def detectable(self, level: float) -> float | None:
        """The smallest true mean that the two-sided test at this level finds with probability `POWER`."""
        if not self.is_tested:
            return None
        return self.error * (_student(self.freedom, 1 - level / 2) + _student(self.freedom, POWER))


def _student(freedom: float, share: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, share))


def is_open(gap: Mapping[int, float], alpha: float) -> bool:
    """Whether the interval of a reference's gain, by seed, reaches down to 0, or cannot be given."""
    values = np.array(list(gap.values()))
    if len(values) < 2:  # noqa: PLR2004 - one number has no spread
        return True
    half = _student(len(values) - 1, 1 - alpha / 2) * values.std(ddof=1) / math.sqrt(len(values))
    return bool(values.mean() - half <= 0)
