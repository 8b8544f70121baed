"""Bootstraps over seeds, stratified by target: each target's seeds are resampled separately.

After Agarwal et al. 2021, "Deep Reinforcement Learning at the Edge of the Statistical Precipice" (NeurIPS 34), section
4.1: each resample draws as many seeds per target as it has, with replacement, from that target's own. The interval
lies between two percentiles of the resampled statistic (Efron 1979). The draws come from a counter-based stream that
depends only on the target's name and its number of seeds, so that identical records give identical bytes.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 2000
MIN_RUNS = 5
"""Percentile intervals of fewer runs per target are too narrow to show."""
_ROWS_AT_ONCE, _MOST_DRAWN, _MOST_CUT = 128, 2**20, 2**22
"""Sizes of the parts of large computations, which save memory and fit into the processor's cache."""
_MOST_NARROW = 2**15 - 1
"""Up to this many runs, twice their pairs fit into 32 bits, which halves the time of a sum."""

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
    stream = np.random.Philox(key=key, counter=[0, 0, side, n])
    found = np.empty((n, RESAMPLES), np.int32)
    for start in range(0, n, 2 * _ROWS_AT_ONCE):
        rows = found[start : start + 2 * _ROWS_AT_ONCE]
        raw: NDArray[np.uint64] = stream.random_raw(rows.size)
        rows[:] = (((raw >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32)).reshape(rows.shape)
    for part in _resamples(n, _MOST_DRAWN):
        drawn, columns = found[:, part], np.arange(part.stop - part.start)
        flat = drawn * np.int64(len(columns)) + columns
        # Replaces the drawn indices by counts.
        counted: NDArray[np.int64] = np.bincount(flat.ravel(), minlength=drawn.size)
        drawn[:] = counted.reshape(drawn.shape)
    return found


def _resamples(n: int, most: int) -> Iterator[slice]:
    """Slices of the resamples of n runs, with at most `most` numbers each."""
    width = max(1, most // n)
    return (slice(start, min(start + width, RESAMPLES)) for start in range(0, RESAMPLES, width))


def target_mean(scores: Sequence[float], target: str, draws: Draws) -> Resampled:
    """The mean of one target's runs, of which there is at least one, in the order of their seeds."""
    n = len(scores)
    if n < MIN_RUNS:
        return Resampled(sum(scores) / n, None)
    total = np.zeros(RESAMPLES)
    # Added run by run: a library's matrix product may round differently on another machine.
    for score, count in zip(scores, draws.counts(target, n), strict=True):
        total += score / n * count
    return Resampled(sum(scores) / n, total)


def interquartile_mean(scores: Sequence[float], target: str, draws: Draws) -> Resampled:
    """The mean of the middle half of one target's n runs, without the floor(n / 4) runs at each end.

    Equals scipy's `trim_mean(scores, 0.25)` (Agarwal et al. 2021, section 4.3).
    """
    n = len(scores)
    order = np.argsort(np.array(scores), kind="stable")
    ordered = [scores[place] for place in order]
    cut = n // 4
    value = float(np.mean(ordered[cut : n - cut]))
    if n < MIN_RUNS:
        return Resampled(value, None)
    rows = draws.counts(target, n)
    parts = [_middle_means(ordered, [rows[place][part] for place in order]) for part in _resamples(n, _MOST_CUT)]
    return Resampled(value, np.concatenate(parts))


def over_targets(found: Sequence[Resampled], alpha: float) -> Estimate:
    """The mean of a statistic over the targets, with its interval of level 1 - alpha.

    Targets are never pooled: they differ in difficulty, so each method would drop the runs of other targets.
    """
    value = sum(one.value for one in found) / len(found)
    drawn = [one.resampled for one in found if one.resampled is not None]
    if len(drawn) < len(found):
        return Estimate(value)
    total = drawn[0].copy()
    for one in drawn[1:]:
        total += one
    low, high = np.quantile(total / len(drawn), (alpha / 2, 1 - alpha / 2))
    return Estimate(value, float(low), float(high))


class Rival:
    """The runs of one method at one target, sorted and counted once for comparison with many other methods."""

    def __init__(self, merits: Sequence[int], target: str, draws: Draws) -> None:
        """Sorts merits (higher is better), which are in the order of the seeds."""
        n = len(merits)
        order = sorted(range(n), key=merits.__getitem__)
        self._ordered = [merits[place] for place in order]
        self._resampled: tuple[Counts, Counts] | None = None
        if n >= MIN_RUNS:
            drawn = draws.counts(target, n, side=1)
            self._resampled = draws.counts(target, n), _running_totals([drawn[place] for place in order])

    def wins(self, merits: Sequence[int]) -> Resampled | None:
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
        below = [bisect_left(self._ordered, merit) for merit in merits]
        not_above = [bisect_right(self._ordered, merit) for merit in merits]
        value = (sum(below) + sum(not_above)) / (2 * n * n)
        if self._resampled is None:
            return Resampled(value, None)
        drawn, totals = self._resampled
        kind = np.int32 if n <= _MOST_NARROW else np.int64
        wins = np.zeros(RESAMPLES, np.int64)
        for start in range(0, n, _ROWS_AT_ONCE):
            part = slice(start, start + _ROWS_AT_ONCE)
            twice = totals.take(below[part], axis=0)
            twice += totals.take(not_above[part], axis=0)
            twice *= drawn[part]
            wins += np.add.reduce(twice, axis=0, dtype=kind)
        return Resampled(value, wins / (2 * n * n))


def _running_totals(rows: Sequence[Counts]) -> Counts:
    """The sums of the first 0, 1, ..., n of n rows (R,); (n + 1, R)."""
    totals = np.zeros((len(rows) + 1, len(rows[0])), np.int32)
    for place, row in enumerate(rows):  # several times faster than numpy's cumsum along this axis
        np.add(totals[place], row, out=totals[place + 1])
    return totals


def _middle_means(ordered: Sequence[float], rows: Sequence[Counts]) -> Reals:
    """The mean of the middle half of N ascending values, each repeated as its row (R,) of counts states; (R,)."""
    cut = len(ordered) // 4
    totals = _running_totals(rows)
    np.clip(totals, cut, len(ordered) - cut, out=totals)
    middle = np.zeros(totals.shape[1])
    for value, below, up_to in zip(ordered, totals, totals[1:], strict=False):
        middle += value * (up_to - below)
    return middle / (len(ordered) - 2 * cut)
