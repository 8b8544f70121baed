"""Bootstraps over seeds, stratified by target: each target's seeds are resampled separately.

After Agarwal et al. 2021, "Deep Reinforcement Learning at the Edge of the Statistical Precipice" (NeurIPS 34), section
4.1: each resample draws as many seeds per target as it has, with replacement, from that target's own. The interval
lies between two percentiles of the resampled statistic (Efron 1979). The draws come from a counter-based stream that
depends only on the target's name and its number of seeds, so that identical records give identical bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from msda_bench.results.summary import mean_of

RESAMPLES = 2000
MIN_RUNS = 5
"""Percentile intervals of fewer runs per target are too narrow to show."""

_ROWS_AT_ONCE, _MOST_AT_ONCE = 128, 2**21
"""Sizes of the parts of large computations, which save memory."""

Reals: TypeAlias = NDArray[np.float64]
Counts: TypeAlias = NDArray[np.int32]


class Estimate(NamedTuple):
    """A number with its percentile interval; the ends are NaN if a target has fewer than `MIN_RUNS` runs."""

    value: float
    low: float = np.nan
    high: float = np.nan


class Resampled(NamedTuple):
    """A statistic of one target's runs.

    Attributes:
        value: of the original runs.
        resampled: (RESAMPLES,); None with fewer than `MIN_RUNS` runs.
    """

    value: float
    resampled: Reals | None


class Draws:
    """Counts how often each resample draws each seed of a target; computed once and cached."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, int, int], Counts] = {}

    def counts(self, target: str, n: int, side: int = 0) -> Counts:
        """(n, RESAMPLES) int32; each column sums to n. Two methods that are drawn separately are sides 0 and 1."""
        if (target, n, side) not in self._counts:
            self._counts[target, n, side] = _draw(target, n, side)
        return self._counts[target, n, side]


def _draw(target: str, n: int, side: int) -> Counts:
    key = int.from_bytes(hashlib.sha256(f"bootstrap {target}".encode()).digest()[:16], "big")
    # The raw output: numpy guarantees only this across versions, not the numbers derived from it.
    stream, drawn = np.random.Philox(key=key, counter=[0, 0, side, n]), np.empty((n, RESAMPLES), np.int32)
    for start in range(0, n, _ROWS_AT_ONCE):
        raw: NDArray[np.uint64] = stream.random_raw(drawn[start : start + _ROWS_AT_ONCE].shape)
        drawn[start : start + _ROWS_AT_ONCE] = ((raw >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32)

    def counted(part: Counts) -> Counts:
        width = part.shape[1]
        flat = part * np.int64(width) + np.arange(width)
        return np.bincount(flat.ravel(), minlength=part.size).reshape(part.shape).astype(np.int32)

    return _in_parts(counted, drawn)


def _in_parts(statistic: Callable[..., NDArray[Any]], *rows: Counts) -> NDArray[Any]:
    """Applies a function to resamples (n, RESAMPLES), part by part, which saves memory."""
    width = max(1, _MOST_AT_ONCE // len(rows[0]))
    starts = range(0, RESAMPLES, width)
    return np.concatenate([statistic(*(own[:, start : start + width] for own in rows)) for start in starts], axis=-1)


def target_mean(scores: Sequence[float], target: str, draws: Draws) -> Resampled:
    """The mean of one target's runs, of which there is at least one, in the order of their seeds."""
    n, values = len(scores), np.array(scores)
    if n < MIN_RUNS:
        return Resampled(mean_of(scores), None)
    # Summed run by run: a library's matrix product may round differently on another machine.
    total = _in_parts(lambda counts: (values[:, None] * counts).sum(axis=0), draws.counts(target, n))
    return Resampled(mean_of(scores), total / n)


def interquartile_mean(scores: Sequence[float], target: str, draws: Draws) -> Resampled:
    """The mean of the middle half of one target's n runs, without the floor(n / 4) runs at each end.

    Equals scipy's `trim_mean(scores, 0.25)` (Agarwal et al. 2021, section 4.3).
    """
    n, order = len(scores), np.argsort(np.array(scores), kind="stable")
    ordered, cut = np.array(scores)[order], n // 4
    value = mean_of(ordered[cut : n - cut].tolist())
    if n < MIN_RUNS:
        return Resampled(value, None)

    def middle(counts: Counts) -> Reals:
        # How often each run is in the middle half of a resample, whose ordered runs these totals number.
        totals = np.clip(_running_totals(counts[order]), cut, n - cut)
        total: Reals = (ordered[:, None] * np.diff(totals, axis=0)).sum(axis=0)
        return total

    return Resampled(value, _in_parts(middle, draws.counts(target, n)) / (n - 2 * cut))


def over_targets(found: Sequence[Resampled], alpha: float) -> Estimate:
    """The mean of a statistic over the targets, with its interval of level 1 - alpha.

    Targets are never pooled: they differ in difficulty, so each method would drop the runs of other targets.
    """
    value = mean_of(one.value for one in found)
    drawn = [one.resampled for one in found if one.resampled is not None]
    if len(drawn) < len(found):
        return Estimate(value)
    low, high = np.quantile(np.add.reduce(drawn) / len(drawn), (alpha / 2, 1 - alpha / 2))
    return Estimate(value, float(low), float(high))


class Rival:
    """The runs of one method at one target, sorted and counted once for comparison with many other methods."""

    def __init__(self, merits: Sequence[float], target: str, draws: Draws) -> None:
        """Sorts merits (higher is better), which are in the order of the seeds."""
        n, order = len(merits), np.argsort(np.array(merits), kind="stable")
        self._ordered = np.array(merits)[order]
        self._resampled: tuple[Counts, Counts] | None = None
        if n >= MIN_RUNS:
            drawn = draws.counts(target, n, side=1)
            self._resampled = draws.counts(target, n), _running_totals(drawn[order])

    def wins(self, merits: Sequence[float]) -> Resampled | None:
        """The share of the n^2 pairs of runs of another method and this one that the other wins; ties count half.

        This is Mann and Whitney's U over n^2, a target's probability of improvement (Agarwal et al. 2021, section 4.3).
        A resample draws the runs of the two methods separately. If runs with the same seed are correlated, the interval
        is slightly too wide. Drawing the same seeds for both would bias it, because a seed drawn twice would meet
        itself more often.
        """
        n = len(merits)
        if not n:
            return None
        # This method's runs below each run of the other, plus those at or below it, are twice the other's wins.
        below, not_above = (np.searchsorted(self._ordered, merits, side) for side in ("left", "right"))
        value = float(below.sum() + not_above.sum()) / (2 * n * n)
        if self._resampled is None:
            return Resampled(value, None)

        def twice(drawn: Counts, totals: Counts) -> NDArray[np.int64]:
            wins: NDArray[np.int64] = ((totals[below] + totals[not_above]) * drawn).sum(axis=0, dtype=np.int64)
            return wins

        return Resampled(value, _in_parts(twice, *self._resampled) / (2 * n * n))


def _running_totals(rows: Counts) -> Counts:
    """The sums of the first 0, 1, ..., n of n rows (n, R); (n + 1, R)."""
    totals = np.zeros((len(rows) + 1, rows.shape[1]), np.int32)
    np.cumsum(rows, axis=0, out=totals[1:])
    return totals
