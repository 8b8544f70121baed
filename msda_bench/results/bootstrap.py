"""Bootstraps over seeds, stratified by target: each target's seeds are resampled separately.

After Agarwal et al. 2021, "Deep Reinforcement Learning at the Edge of the Statistical Precipice" (NeurIPS 34), section
4.1: each resample draws as many seeds per target as it has, with replacement, from that target's own. The interval
lies between two percentiles of the resampled statistic (Efron 1979). The draws come from a counter-based stream that
depends only on the target's name and its number of seeds, so that identical records give identical bytes. For the same
reason sums are taken run by run: a library's matrix product may round differently on another machine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from msda_bench.results.estimates import mean_of
from msda_bench.results.signed_rank import Reals

RESAMPLES = 2000
MIN_RUNS = 5
"""Percentile intervals of fewer runs per target are too narrow to show."""

Counts: TypeAlias = NDArray[np.int32]
Draws: TypeAlias = Callable[[str, int, int], Counts]
"""`drawn`, cached: drawing takes longer than most statistics of the draws."""


class Estimate(NamedTuple):
    """A number with its percentile interval; the ends are NaN if a target has fewer than `MIN_RUNS` runs."""

    value: float
    low: float = np.nan
    high: float = np.nan


class Resampled(NamedTuple):
    """A statistic of one target's runs, and of its (RESAMPLES,) resamples; None with fewer than `MIN_RUNS` runs."""

    value: float
    resampled: Reals | None


def drawn(target: str, n: int, side: int) -> Counts:
    """How often each resample draws each of a target's n seeds: (n, RESAMPLES) int32, whose columns sum to n.

    Two methods that are drawn separately are sides 0 and 1.
    """
    key = int.from_bytes(hashlib.sha256(f"bootstrap {target}".encode()).digest()[:16], "big")
    # The raw output: numpy guarantees only this across versions, not the numbers derived from it.
    stream, counts = np.random.Philox(key=key, counter=[0, 0, side, n]), np.zeros((n, RESAMPLES), np.int32)
    for _ in range(n):
        raw: NDArray[np.uint64] = stream.random_raw(RESAMPLES)
        counts[((raw >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32), np.arange(RESAMPLES)] += 1
    return counts


def target_mean(scores: Sequence[float], target: str, draws: Draws) -> Resampled:
    """The mean of one target's runs, of which there is at least one, in the order of their seeds."""
    n, total = len(scores), np.zeros(RESAMPLES)
    if n < MIN_RUNS:
        return Resampled(mean_of(scores), None)
    for score, counts in zip(scores, draws(target, n, 0), strict=True):
        total += score * counts
    return Resampled(mean_of(scores), total / n)


def interquartile_mean(scores: Sequence[float], target: str, draws: Draws) -> Resampled:
    """The mean of the middle half of one target's n runs, without the floor(n / 4) runs at each end.

    Equals scipy's `trim_mean(scores, 0.25)` (Agarwal et al. 2021, section 4.3).
    """
    n, cut, order = len(scores), len(scores) // 4, np.argsort(scores, kind="stable")
    value = mean_of(sorted(scores)[cut : n - cut])
    if n < MIN_RUNS:
        return Resampled(value, None)
    counts, total = draws(target, n, 0), np.zeros(RESAMPLES)
    places = np.zeros(RESAMPLES, np.int32)
    counted = np.full(RESAMPLES, cut, np.int32)
    for run in order:  # each resample's runs from the lowest; `places` numbers them, `counted` those of the middle half
        places += counts[run]
        before, counted = counted, np.minimum(np.maximum(places, cut), n - cut)
        total += scores[run] * (counted - before)
    return Resampled(value, total / (n - 2 * cut))


def over_targets(targets: Sequence[Resampled], alpha: float) -> Estimate:
    """The mean of a statistic over the targets, with its interval of level 1 - alpha.

    Targets are never pooled: they differ in difficulty, so each method would drop the runs of other targets.
    """
    value = mean_of(target.value for target in targets)
    resampled = [target.resampled for target in targets if target.resampled is not None]
    if len(resampled) < len(targets):
        return Estimate(value)
    low, high = np.quantile(np.add.reduce(resampled) / len(resampled), (alpha / 2, 1 - alpha / 2))
    return Estimate(value, float(low), float(high))


def share_of_wins(first: Sequence[float], second: Sequence[float], target: str, draws: Draws) -> Resampled | None:
    """The share of the n^2 pairs of runs of two methods that the first wins, higher being better; ties count half.

    This is Mann and Whitney's U over n^2, a target's probability of improvement (Agarwal et al. 2021, section 4.3).
    A resample draws the runs of the two methods separately. If runs with the same seed are correlated, the interval
    is slightly too wide. Drawing the same seeds for both would bias it, because a seed drawn twice would meet
    itself more often.
    """
    n, order = len(first), np.argsort(second, kind="stable")
    if not n:
        return None
    # The second method's runs below each run of the first, plus those at or below it, are twice the first's wins.
    below, not_above = (np.searchsorted(np.take(second, order), first, side) for side in ("left", "right"))
    value = float(below.sum() + not_above.sum()) / (2 * n * n)
    if n < MIN_RUNS:
        return Resampled(value, None)
    totals, twice = np.zeros((n + 1, RESAMPLES), np.int32), np.zeros(RESAMPLES, np.int64)
    np.cumsum(draws(target, n, 1)[order], axis=0, out=totals[1:])
    for low, high, counts in zip(below, not_above, draws(target, n, 0), strict=True):
        twice += (totals[low] + totals[high]) * counts
    return Resampled(value, twice / (2 * n * n))
