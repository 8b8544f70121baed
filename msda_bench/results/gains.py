"""Estimates a method's gain over several data sets: their mean, the share of a gap, a new data set, what survives."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from msda_bench.results.bootstrap import RESAMPLES, drawn
from msda_bench.results.estimates import POWER, mean_of
from msda_bench.results.signed_rank import Reals

Strata: TypeAlias = Mapping[str, Mapping[int, float]]
"""A method's gains by experiment, then by seed."""
SURVIVES = ("gain_tuned", "gain_oracle", "survives", "survives_low", "survives_high")
TAU_SCALE = 5.0
"""Scale of the half-Cauchy prior of the spread of true gains between data sets, in points."""
_TAUS = 2_000
_FEWEST_DATASETS = 3
"""The fewest experiments whose spread is estimated."""
_MOST_FLIPPED = 16
"""Up to this many blocks all signs are tried."""
_FLIPS = 20_000


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


def sign_flip_p(strata: Strata) -> float:
    """The two-sided p of the mean gain when the sign of each gain, of an experiment and seed, is as likely either way.

    All signs are counted for up to 16 gains; for more, 20,000 from a counter-based stream, the observed one included.
    """
    weighed = np.array([gain / len(gains) for gains in strata.values() for gain in gains.values()])
    seen = abs(math.fsum(weighed)) * (1 - 1e-12)  # the observed signs count, whatever order they are added in
    if len(weighed) > _MOST_FLIPPED:
        return (1 + int((np.abs(_signs(len(weighed)) @ weighed) >= seen).sum())) / (1 + _FLIPS)
    sums = np.zeros(1)
    for gain in weighed:
        sums = np.concatenate([sums + gain, sums - gain])
    return float((np.abs(sums) >= seen).mean())


@lru_cache(maxsize=4)
def _signs(n: int) -> Reals:
    words: NDArray[np.uint64] = np.random.Philox(key=n).random_raw(_FLIPS * n)
    return 1.0 - 2.0 * (words >> np.uint64(63)).reshape(_FLIPS, n).astype(np.float64)


def gap_closed(strata: Strata, gaps: Strata, alpha: float) -> dict[str, Any]:
    """The share of the gap to a reference that a method closes: its mean gain over the mean gap.

    Both are over the experiments whose own gap has an interval above 0, at the seeds that both have. The interval is
    Fieller's (1954), for the ratio of two means over the same seeds.
    """
    both = {
        name: np.array([(gains[seed], gaps[name][seed]) for seed in gains if seed in gaps[name]])
        for name, gains in strata.items()
        if name in gaps and not is_open(gaps[name], alpha)
    }
    pairs = [values for values in both.values() if len(values) > 1]
    if not pairs:
        return {"n_gaps": 0}
    d = len(pairs)
    gain, gap = np.mean([values.mean(axis=0) for values in pairs], axis=0).tolist()
    row = {"n_gaps": d, "gap_closed": gain / gap}
    left = [values[:, 0] - gain / gap * values[:, 1] for values in pairs]
    of_left = MeanGain.of([(0.0, float(value.std(ddof=1)) / math.sqrt(len(value)), len(value)) for value in left])
    if not of_left.is_tested:
        return row
    t = _student(of_left.freedom, 1 - alpha / 2)
    spread = np.sum([np.cov(values.T) / len(values) for values in pairs], axis=0) / d**2 * t**2
    (v_gain, v_both), (_, v_gap) = spread.tolist()
    a, b, c = gap**2 - v_gap, gain * gap - v_both, gain**2 - v_gain
    if a <= 0 or b**2 < a * c:  # the gap itself may be 0
        return row
    root = math.sqrt(b**2 - a * c)
    return row | {"gap_closed_low": (b - root) / a, "gap_closed_high": (b + root) / a}


def is_open(gap: Mapping[int, float], alpha: float) -> bool:
    """Whether the interval of a reference's gain, by seed, reaches down to 0, or cannot be given."""
    values = np.array(list(gap.values()))
    if len(values) < 2:  # noqa: PLR2004 - one number has no spread
        return True
    half = _student(len(values) - 1, 1 - alpha / 2) * values.std(ddof=1) / math.sqrt(len(values))
    return bool(values.mean() - half <= 0)


def open_gaps(gaps: Strata, alpha: float) -> tuple[str, ...]:
    """The experiments whose gap to the reference has an interval that reaches down to 0."""
    return tuple(name for name, gap in gaps.items() if is_open(gap, alpha))


def new_dataset(gains: Sequence[float], errors: Sequence[float], alpha: float, margin: float | None) -> dict[str, Any]:
    """What the gains on some data sets say of the gain on another one like them.

    The model: an observed gain is normal about the true one, with its standard error; true gains are normal about
    their expectation with spread tau. The prior is flat in the expectation and half-Cauchy in tau, of scale
    `TAU_SCALE`. Given tau, everything is normal; tau is integrated over 2,000 equal shares of its prior.

    Returns:
        The expectation's posterior mean and interval, the posterior median of tau, and with a margin the probabilities
        that the gain on a new data set is larger than it, and that it lies within it; nothing for fewer than three.
    """
    if len(gains) < _FEWEST_DATASETS or np.isnan(errors).any():
        return {}
    from scipy.special import ndtr

    tau = TAU_SCALE * np.tan((np.arange(_TAUS) + 0.5) / _TAUS * np.pi / 2)
    variances = np.square(errors) + np.square(tau)[:, np.newaxis]
    variance = 1 / (1 / variances).sum(axis=1)
    middle = variance * (np.asarray(gains) / variances).sum(axis=1)
    misfit = (np.square(gains - middle[:, np.newaxis]) / variances + np.log(variances)).sum(axis=1)
    log_weight = (np.log(variance) - misfit) / 2
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()

    def below(x: float, spread: Reals) -> float:
        return float(weight @ ndtr((x - middle) / spread))

    error, spread = np.sqrt(variance), np.sqrt(variance + np.square(tau))
    row = {
        "expected_gain": float(weight @ middle),
        "expected_low": _solved(lambda x: below(x, error), alpha / 2),
        "expected_high": _solved(lambda x: below(x, error), 1 - alpha / 2),
        "spread": float(tau[np.searchsorted(weight.cumsum(), 0.5)]),
    }
    if margin is not None:
        row["p_new_beyond"] = 1 - below(margin, spread)
        row["p_new_within"] = below(margin, spread) - below(-margin, spread)
    return row


def _solved(rises: Callable[[float], float], level: float) -> float:
    """Where a distribution function reaches a level, by bisection."""
    low, high = -1e6, 1e6
    while low < (middle := (low + high) / 2) < high and high - low > 1e-10:  # noqa: PLR2004 - points of accuracy
        low, high = (middle, high) if rises(middle) < level else (low, middle)
    return middle


def ratio_of_gains(first: Strata, second: Strata, alpha: float) -> dict[str, float]:
    """The ratio of two mean gains over experiments that both have, with its bootstrap interval: `SURVIVES`.

    Each resample draws as many experiments with replacement, and within each drawn one the seeds that both tracks
    have. There is no ratio where the second mean is not shown to be above 0, and for fewer than three experiments.
    """
    pairs = {
        name: np.array([(gain, second[name][seed]) for seed, gain in gains.items() if seed in second[name]])
        for name, gains in first.items()
        if name in second
    }
    pairs = {name: values for name, values in pairs.items() if len(values)}
    if not pairs:
        return {}
    top, bottom = (mean_of(values[:, side].mean() for values in pairs.values()) for side in (0, 1))
    n, means = len(pairs), np.zeros((RESAMPLES, 2))
    picked = _picked(tuple(pairs))
    for slot in range(n):
        for place, (name, values) in enumerate(pairs.items()):
            is_picked = (picked[:, slot] == place)[:, np.newaxis]
            counts = drawn(f"{name} {slot}", len(values), 0)
            means += is_picked * (counts.T @ values) / (len(values) * n)
    row = {"gain_tuned": top, "gain_oracle": bottom}
    if n < _FEWEST_DATASETS or np.quantile(means[:, 1], alpha / 2) <= 0:
        return row
    low, high = np.quantile(means[:, 0] / means[:, 1], (alpha / 2, 1 - alpha / 2)).tolist()
    return row | {"survives": top / bottom, "survives_low": low, "survives_high": high}


def _picked(names: tuple[str, ...]) -> NDArray[np.int64]:
    """Which experiment each resample takes for each of as many slots."""
    key = int.from_bytes(hashlib.sha256("\n".join(names).encode()).digest()[:16], "big")
    raw: NDArray[np.uint64] = np.random.Philox(key=key).random_raw((RESAMPLES, len(names)))
    return (((raw >> np.uint64(32)) * np.uint64(len(names))) >> np.uint64(32)).astype(np.int64)
