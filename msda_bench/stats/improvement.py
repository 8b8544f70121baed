"""Probability of improvement: how often a run of one method beats a run of another."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from msda_bench.stats.bootstrap import MIN_RUNS, RESAMPLES, Counts, Draws, Estimate, Reals, percentiles, running_totals

_ROWS_AT_ONCE = 128
"""As many as a processor's cache holds."""
_MOST_NARROW = 2**15 - 1
"""Twice the pairs of so many runs fit into 32 bits, of which a sum takes half the time."""


@dataclass(frozen=True, eq=False)
class Share:
    """How often a run of the first method beats one of the second at one target.

    Attributes:
        value: of the runs as they are.
        resampled: one a resample; None with fewer than `MIN_RUNS` runs.
    """

    value: float
    resampled: Reals | None


class Rival:
    """Runs of one method at one target, sorted and counted once to be set against those of many others."""

    def __init__(self, merits: Sequence[int], target: str, draws: Draws) -> None:
        """Takes the runs.

        Args:
            merits: more being better, seed by seed.
            target: whose runs these are.
            draws: the resamples.
        """
        n = len(merits)
        order = sorted(range(n), key=merits.__getitem__)
        self._ordered = [merits[place] for place in order]
        self._resampled: tuple[Counts, Counts] | None = None
        if n >= MIN_RUNS:
            drawn = draws.counts(target, n, side=1)
            self._resampled = draws.counts(target, n), running_totals([drawn[place] for place in order])

    def share(self, merits: Sequence[int]) -> Share | None:
        """The share of all n^2 pairs of a run of another method and of this one that the other wins, a tie half.

        That is Mann and Whitney's U over n^2. A resample draws the runs of both apart. Where runs of one seed rise and
        fall together that makes the interval rather too wide; to draw the same seeds for both would bias it, because a
        seed drawn twice meets itself more often.

        Args:
            merits: those of the other at the same seeds.

        Returns:
            The share; None without runs.
        """
        n = len(merits)
        if not n:
            return None
        # Runs of this below each run of the other, and those at or below it: together twice its wins, ties counting 1.
        below = [bisect_left(self._ordered, merit) for merit in merits]
        not_above = [bisect_right(self._ordered, merit) for merit in merits]
        value = (sum(below) + sum(not_above)) / (2 * n * n)
        if self._resampled is None:
            return Share(value, None)
        drawn, totals = self._resampled
        kind = np.int32 if n <= _MOST_NARROW else np.int64
        wins = np.zeros(RESAMPLES, np.int64)
        for start in range(0, n, _ROWS_AT_ONCE):
            part = slice(start, start + _ROWS_AT_ONCE)
            twice = totals.take(below[part], axis=0)
            twice += totals.take(not_above[part], axis=0)
            twice *= drawn[part]
            wins += np.add.reduce(twice, axis=0, dtype=kind)
        return Share(value, wins / (2 * n * n))


def probability_of_improvement(shares: Sequence[Share | None], alpha: float) -> Estimate | None:
    """The probability that a run of the first method beats one of the second at a target drawn at random.

    It is the mean of the targets' shares; targets are resampled apart (Agarwal et al. 2021, section 4.3).

    Args:
        shares: one a target.
        alpha: the level of the interval is 1 - alpha.

    Returns:
        The estimate; None where there is no target, or one without runs of both.
    """
    known = [one for one in shares if one is not None]
    if not known or len(known) < len(shares):
        return None
    value = sum(one.value for one in known) / len(known)
    resampled = [one.resampled for one in known if one.resampled is not None]
    if len(resampled) < len(known):
        return Estimate(value, None)
    mean = resampled[0] if len(resampled) == 1 else np.mean(resampled, axis=0)
    return Estimate(value, percentiles(mean, alpha))
