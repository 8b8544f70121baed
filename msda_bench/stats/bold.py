"""Which methods stand in bold: the best by mean, and those that a test cannot tell from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from msda_bench.stats.compare import Comparison

BoldSet: TypeAlias = dict[str, bool | None]
"""By method; None where too few runs could tell."""


@dataclass(frozen=True)
class Bold:
    """Two rules, side by side.

    Attributes:
        paper: the paper's: not significantly worse than the best by mean in a one-sided test at alpha, uncorrected. It
            describes: of 6 equal methods with 20 seeds it takes the bold from one or more in over half of all columns.
        holm: not significantly worse than the best by mean in two-sided tests of all pairs with Holm's correction.
    """

    paper: BoldSet
    holm: BoldSet


def enough_pairs(n: int, alpha: float) -> bool:
    """Whether n pairs can be significant in a one-sided signed-rank test."""
    return 0.5**n <= alpha


def bold_sets(merits: Mapping[str, float], pairs: Sequence[Comparison], alpha: float) -> Bold:
    """Finds the bold methods of one column of a table.

    Args:
        merits: mean of each ranked method, more being better, in table order. Leave out those whose runs are not
            `enough_pairs`: no lone survivor of many runs is the best, and none is as good as the best for want of runs.
        pairs: all comparisons of the column.
        alpha: significance level.

    Returns:
        Both sets; a method that is not in `merits` is in neither.
    """
    between = {frozenset((pair.first, pair.second)): pair for pair in pairs}
    return Bold(
        paper=_against_best(merits, between, partial(_worse_in_paper, alpha=alpha)),
        holm=_against_best(merits, between, partial(_worse_by_holm, family=len(pairs), alpha=alpha)),
    )


def _against_best(
    merits: Mapping[str, float],
    between: Mapping[frozenset[str], Comparison],
    is_worse: Callable[[str, Comparison], bool | None],
) -> BoldSet:
    """The best one counts as told apart where any other was."""
    if not merits:
        return {}
    best = max(merits, key=merits.__getitem__)
    worse = {name: is_worse(best, between[frozenset((best, name))]) for name in merits if name != best}
    told = not worse or any(answer is not None for answer in worse.values())
    bold = {name: None if answer is None else not answer for name, answer in worse.items()}
    return {best: True if told else None, **bold}


def _worse_in_paper(best: str, pair: Comparison, *, alpha: float) -> bool | None:
    if not enough_pairs(pair.n_paired, alpha):
        return None
    return (pair.p_first if pair.first == best else pair.p_second) <= alpha


def _worse_by_holm(best: str, pair: Comparison, *, family: int, alpha: float) -> bool | None:
    if pair.p_holm <= alpha:
        return pair.better == best
    return False if family * 2 * 0.5**pair.n_paired <= alpha else None
