"""Bootstrap over seeds, stratified by target: each target's seeds are drawn anew among themselves.

After Agarwal et al. 2021, "Deep Reinforcement Learning at the Edge of the Statistical Precipice" (NeurIPS 34), section
4.1: in each resample every target keeps its number of seeds, drawn with replacement from its own. The interval goes
between two percentiles of the resampled statistic (Efron 1979). The draws come from a counter-based stream that knows
the target's name and its number of seeds alone, so that the same records give the same bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 2000
MIN_RUNS = 5
"""Percentile intervals of fewer runs a target are too narrow to show."""
_ROWS_AT_ONCE, _MOST_DRAWN, _MOST_CUT = 256, 2**20, 2**22
"""Parts of what would take hundreds of megabytes for ten thousand runs."""

Reals: TypeAlias = NDArray[np.float64]
Counts: TypeAlias = NDArray[np.int32]


@dataclass(frozen=True)
class Interval:
    """A percentile bootstrap interval, level 1 - alpha."""

    low: float
    high: float


@dataclass(frozen=True)
class Estimate:
    """A number and its interval.

    Attributes:
        value: of the runs as they are.
        interval: None where a target has fewer than `MIN_RUNS` runs.
    """

    value: float
    interval: Interval | None


class Draws:
    """How often each seed of a target is drawn, resample by resample; made once and kept."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, int, int], Counts] = {}

    def counts(self, target: str, n: int, side: int = 0) -> Counts:
        """(n, RESAMPLES) int32; each column adds up to n.

        Args:
            target: the stratum.
            n: how many runs there are, and are drawn.
            side: 0; 1 for the second of two methods whose runs are drawn apart.
        """
        if (target, n, side) not in self._counts:
            self._counts[target, n, side] = _draw(target, n, side)
        return self._counts[target, n, side]


def _draw(target: str, n: int, side: int) -> Counts:
    key = int.from_bytes(hashlib.sha256(f"bootstrap {target}".encode()).digest()[:16], "big")
    # The raw output, because numpy keeps that the same in all versions, and not what it makes of it.
    stream = np.random.Philox(key=key, counter=[0, 0, side, n])
    found = np.empty((n, RESAMPLES), np.int32)
    for start in range(0, n, _ROWS_AT_ONCE):
        rows = found[start : start + _ROWS_AT_ONCE]
        raw: NDArray[np.uint64] = stream.random_raw(rows.size)
        rows[:] = (((raw >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32)).reshape(rows.shape)
    for part in _resamples(n, _MOST_DRAWN):
        drawn, columns = found[:, part], np.arange(part.stop - part.start)
        flat = drawn * np.int64(len(columns)) + columns
        # In place of who was drawn comes how often.
        counted: NDArray[np.int64] = np.bincount(flat.ravel(), minlength=drawn.size)
        drawn[:] = counted.reshape(drawn.shape)
    return found


def _resamples(n: int, most: int) -> Iterator[slice]:
    """Resamples of n runs, a part at a time, of at most so many numbers."""
    width = max(1, most // n)
    return (slice(start, min(start + width, RESAMPLES)) for start in range(0, RESAMPLES, width))


def bootstrap_mean(runs: Mapping[str, Sequence[Fraction]], draws: Draws, alpha: float) -> Interval | None:
    """The interval of the mean over targets of the mean over seeds.

    Args:
        runs: scores by target, in the order of their seeds.
        draws: the resamples.
        alpha: the level is 1 - alpha.

    Returns:
        The interval; None where there is no target, or one has fewer than `MIN_RUNS` runs.
    """
    if not _enough(runs):
        return None
    total = np.zeros(RESAMPLES)
    for target, scores in runs.items():
        values = np.array([float(score) for score in scores])
        # Run by run: a library's matrix product may round otherwise on another machine.
        for value, count in zip(values, draws.counts(target, len(values)), strict=True):
            total += value / len(values) * count
    return percentiles(total / len(runs), alpha)


def interquartile_mean(runs: Mapping[str, Sequence[Fraction]], draws: Draws, alpha: float) -> Estimate | None:
    """The mean of the middle half of all runs of all targets, a quarter being cut off at each end.

    Of N runs, floor(N / 4) are left out at each end (Agarwal et al. 2021, section 4.3; as scipy's trim_mean).

    Args:
        runs: scores by target, in the order of their seeds.
        draws: the resamples.
        alpha: the level of the interval is 1 - alpha.

    Returns:
        The estimate; None where there is no run, or a target without one.
    """
    if not runs or not all(runs.values()):
        return None
    values = np.array([float(score) for scores in runs.values() for score in scores])
    order = np.argsort(values, kind="stable")
    ordered = values[order].tolist()
    value = float(_middle_mean(ordered, [np.ones(1, np.int32)] * len(values))[0])
    if not _enough(runs):
        return Estimate(value, None)
    rows = [row for target, scores in runs.items() for row in draws.counts(target, len(scores))]
    resampled = [
        _middle_mean(ordered, [rows[place][part] for place in order]) for part in _resamples(len(rows), _MOST_CUT)
    ]
    return Estimate(value, percentiles(np.concatenate(resampled), alpha))


def percentiles(resampled: Reals, alpha: float) -> Interval:
    """The interval that leaves out alpha / 2 of the resamples at each end, straight between two of them.

    That is numpy's quantile, which takes several times as long for so few numbers.
    """
    last = len(resampled) - 1
    below = [int(last * share) for share in (alpha / 2, 1 - alpha / 2)]
    ordered = np.partition(resampled, sorted({*below, *(min(place + 1, last) for place in below)}))
    low, high = (
        ordered[place] + (last * share - place) * (ordered[min(place + 1, last)] - ordered[place])
        for place, share in zip(below, (alpha / 2, 1 - alpha / 2), strict=True)
    )
    return Interval(float(low), float(high))


def running_totals(rows: Sequence[Counts]) -> Counts:
    """Of n rows (R,), the sums of the first 0, 1, ..., n; (n + 1, R)."""
    totals = np.zeros((len(rows) + 1, len(rows[0])), np.int32)
    for place, row in enumerate(rows):  # several times as fast as numpy's cumsum along this axis
        np.add(totals[place], row, out=totals[place + 1])
    return totals


def _middle_mean(values: Sequence[float], rows: Sequence[Counts]) -> Reals:
    """Of N ascending values, each drawn as often as its row (R,) says, the mean of the middle half; (R,)."""
    cut = len(values) // 4
    totals = running_totals(rows)
    np.clip(totals, cut, len(values) - cut, out=totals)
    middle = np.zeros(totals.shape[1])
    for value, below, up_to in zip(values, totals, totals[1:], strict=False):
        middle += value * (up_to - below)
    return middle / (len(values) - 2 * cut)


def _enough(runs: Mapping[str, Sequence[Fraction]]) -> bool:
    return bool(runs) and all(len(scores) >= MIN_RUNS for scores in runs.values())
