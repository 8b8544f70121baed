"""Decides each comparison of two methods, in one place; tables, charts and sentences only report it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal, TypeAlias

import numpy as np

from msda_bench.results.estimates import detectable_shift, summarize
from msda_bench.results.scores import ScoreColumn, ScoreTable, known
from msda_bench.results.signed_rank import signed_rank_tests
from msda_bench.suite.plan import Experiment

Scope: TypeAlias = Literal["target", "average", "across_datasets"]
Pair: TypeAlias = tuple[str, str]

BETTER, WORSE, SAME, UNKNOWN = "better", "worse", "same", "unknown"
INCOMPLETE, TOO_FEW, NOT_SIGNIFICANT = "incomplete", "too few pairs", "not significant"
TOO_SMALL = "too few test rows"
UNTESTED = frozenset({INCOMPLETE, TOO_FEW, TOO_SMALL})
"""The reasons why no data of this size could have shown a difference."""
OPPOSITE = {BETTER: WORSE, WORSE: BETTER}
"""The outcome of the second method against the first, where it differs."""
MIN_PAIRS_ACROSS = 6
"""The fewest datasets to test across: a two-sided test of fewer pairs cannot reach 0.05."""
ALL_PAIRS = "all pairs"
MOST_ALL_PAIRS = 6
"""Up to this many ranked methods are compared in all pairs; of more, each with the baseline and with the best."""


@dataclass(frozen=True)
class PairedComparison:
    """Two methods at a target, on average, or across datasets, over the seeds (or datasets) that both have.

    Differences are positive where `first` is better. Numbers are None without any pair.

    Attributes:
        alpha: the level of significance, and of the interval.
        n_planned, n_paired, n_zero: planned pairs, pairs at hand, and those without a difference.
        is_whole: whether no run of a pair is missing.
        is_small: whether the tests have too few rows to show a difference.
        p: exact two-sided p, not corrected; `p_one_sided` is in the direction of the better mean.
        leads: whether the ranks are in favour of `first`.
        difference_low, difference_high: the interval of the mean difference.
        deviation: the standard deviation of the differences.
        outcome: of `first` against `second`; `reason` is why it is unknown.
        family, n_family: the tests over which p is corrected, and their number.
        p_holm: p after Holm's correction.
        detectable: the smallest true difference that the test would find with probability 0.8.
    """

    scope: Scope
    target: str | None
    first: str
    second: str
    metric: str
    alpha: float
    n_planned: int
    n_paired: int
    n_zero: int
    is_whole: bool
    is_small: bool = False
    experiment: str | None = None
    p: float | None = None
    p_one_sided: float = 1.0
    leads: bool = False
    mean_difference: float | None = None
    difference_low: float | None = None
    difference_high: float | None = None
    deviation: float = 0.0
    outcome: str = UNKNOWN
    reason: str | None = None
    family: str = ""
    n_family: int = 0
    p_holm: float | None = None
    detectable: float | None = None

    @property
    def pair(self) -> Pair:
        """The two methods."""
        return self.first, self.second

    @property
    def attainable_p(self) -> float:
        """The smallest p, before any correction, that so many pairs can give."""
        return min(1.0, 2 * 0.5 ** (self.n_paired - self.n_zero))

    @property
    def is_tested(self) -> bool:
        """Whether there are enough pairs to show a difference, shown or not."""
        return self.outcome in OPPOSITE or self.reason == NOT_SIGNIFICANT

    @property
    def worse(self) -> str | None:
        """The method that was shown to be worse, if either was."""
        if self.outcome not in OPPOSITE:
            return None
        return self.second if self.outcome == BETTER else self.first

    def other(self, method: str) -> str:
        """The method that this one is compared with."""
        return self.second if self.first == method else self.first

    def outcome_of(self, method: str) -> str:
        """The outcome of one of the two methods against the other."""
        return self.outcome if self.first == method else OPPOSITE.get(self.outcome, self.outcome)

    def difference_of(self, method: str) -> tuple[float, float, float]:
        """The mean difference of one of the two methods from the other and the ends of its interval; NaN without it."""
        sizes = (self.mean_difference, self.difference_low, self.difference_high)
        size, low, high = (math.nan if number is None else number for number in sizes)
        if self.first == method:
            return size, low, high
        return 0.0 - size, 0.0 - high, 0.0 - low


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusts p-values for the family-wise error rate: rejecting those at most alpha keeps it at most alpha.

    The j-th smallest of m becomes the running maximum of (m - j + 1) p_(j), capped at 1 (Holm 1979).
    """
    p = np.asarray(p_values, float)
    order = np.argsort(p, kind="stable")
    multiplied = np.arange(len(p), 0, -1) * p[order]
    adjusted = np.empty(len(p))
    adjusted[order] = np.maximum.accumulate(np.minimum(1.0, multiplied))
    return [float(value) for value in adjusted]


def test_baseline(experiment: Experiment, ranked: Sequence[str]) -> str | None:
    """The baseline, if each method is compared with it and with the best alone; None where all pairs are compared."""
    if experiment.baseline not in ranked or experiment.pairs == "all":
        return None
    if experiment.pairs is None and len(ranked) <= MOST_ALL_PAIRS:
        return None
    return experiment.baseline


def tests_with_baseline(experiment: Experiment) -> int:
    """The size of the family that the comparisons with the baseline belong to."""
    ranked = [method.name for method in experiment.methods if not method.reference]
    if test_baseline(experiment, ranked) is not None:
        return len(ranked) - 1
    return len(ranked) * (len(ranked) - 1) // 2


def comparisons(table: ScoreTable, *, whole: bool = True) -> list[PairedComparison]:
    """The decided comparisons of an experiment at each target and on average.

    Without `whole` only those on average, which are the same, since each target has families of its own.
    """
    columns: Sequence[ScoreColumn] = table.columns if whole else (None,)
    every: list[PairedComparison] = []
    for column in columns:
        every += _in_column(table, column)
    return every


def _in_column(table: ScoreTable, column: ScoreColumn) -> Iterator[PairedComparison]:
    pairs = list(combinations(table.ranked, 2))
    baseline = test_baseline(table.experiment, table.ranked)
    if baseline is None:
        yield from _family(table, column, pairs, ALL_PAIRS)
        return
    with_baseline = [pair for pair in pairs if baseline in pair]
    yield from _family(table, column, with_baseline, f"against {baseline}")
    best = best_method(table, column)
    with_best = [pair for pair in pairs if best in pair and baseline not in pair]
    yield from _family(table, column, with_best, f"against {best}")


def _family(table: ScoreTable, column: ScoreColumn, pairs: Sequence[Pair], family: str) -> list[PairedComparison]:
    return test_family([compared_at(table, column, pair) for pair in pairs], family)


def best_method(table: ScoreTable, column: ScoreColumn) -> str | None:
    """The ranked method with the best mean, of those with enough seeds for any test; None without one.

    So a method that has results at a few seeds only is not the best.
    """
    means = table.means(table.ranked, column)
    enough = [name for name in means if 0.5 ** len(table.known(name, column)) <= table.experiment.alpha]
    return max(enough, key=means.__getitem__, default=None)


def with_method(pairs: Iterable[PairedComparison], method: str | None) -> list[PairedComparison]:
    """The comparisons of a method with the others."""
    return [pair for pair in pairs if method in pair.pair]


def with_baseline(pairs: Iterable[PairedComparison], baseline: str | None) -> list[PairedComparison]:
    """The family of comparisons with a baseline; all comparisons if there is none."""
    return [pair for pair in pairs if baseline is None or pair.family == f"against {baseline}"]


def pairs_of_mean(pairs: Iterable[PairedComparison]) -> list[PairedComparison]:
    """The comparisons by which methods are ranked: those of the mean over targets."""
    return [pair for pair in pairs if pair.scope == "average"]


def compared_at(table: ScoreTable, column: ScoreColumn, pair: Pair) -> PairedComparison:
    """Two methods over the seeds at a target, or on average; not decided yet."""
    comparison = compared_between(table, table, column, pair)
    return replace(comparison, experiment=table.experiment.name, is_small=table.is_small(column))


def compared_between(first: ScoreTable, second: ScoreTable, column: ScoreColumn, pair: Pair) -> PairedComparison:
    """A method of one experiment and a method of another over the seeds that both have; not decided yet.

    The metric and the level are those of the second experiment.
    """
    merits = first.of(pair[0], column)
    others = second.of(pair[1], column, first.seeds)
    decimals = (first.decimals[first.place(column)], second.decimals[second.place(column)])
    return paired_statistics(
        "average" if column is None else "target",
        column,
        pair,
        known(merits - others),
        len(set(first.seeds) & set(second.seeds)),
        metric=second.metric,
        alpha=second.experiment.alpha,
        decimals=min(decimals),
        overlap=max(first.overlap(column), second.overlap(column)),
    )


def paired_statistics(
    scope: Scope,
    target: str | None,
    pair: Pair,
    differences: Sequence[float],
    n_planned: int,
    *,
    metric: str,
    alpha: float,
    decimals: int,
    overlap: float = 0.0,
    complete: bool = True,
) -> PairedComparison:
    """Compares two methods by their differences in merit; nothing is decided yet.

    The test takes differences rounded once to these `decimals`, so that exact ties and zeros stay what they are; means
    and intervals are computed before they are rounded. The interval allows for the `overlap` of the splits. `complete`
    is False where a run is missing behind the differences.
    """
    n = len(differences)
    tests = signed_rank_tests(np.round(np.asarray(differences, float), decimals))
    comparison = PairedComparison(
        scope=scope,
        target=target,
        first=pair[0],
        second=pair[1],
        metric=metric,
        alpha=alpha,
        n_planned=n_planned,
        n_paired=n,
        n_zero=tests["greater"].n_zero,
        is_whole=complete and n >= n_planned,
    )
    if not n:
        return comparison
    summary = summarize(differences)
    low, high = summary.allowing(overlap).interval(alpha)
    mean = round(summary.mean, decimals) + 0.0  # no -0.0
    p_first, p_second = tests["greater"].p, tests["less"].p
    return replace(
        comparison,
        p=tests["two-sided"].p,
        p_one_sided=p_second if mean < 0 else p_first,
        leads=p_first < p_second,
        mean_difference=mean,
        difference_low=_rounded(low, decimals),
        difference_high=_rounded(high, decimals),
        deviation=_rounded(summary.standard_error * n**0.5, decimals) or 0.0,
    )


def _rounded(size: float, decimals: int) -> float | None:
    return None if np.isnan(size) else round(size, decimals) + 0.0


def test_family(comparisons: Sequence[PairedComparison], family: str) -> list[PairedComparison]:
    """Decides comparisons that are one family, by Holm's correction."""
    corrected = holm([1.0 if row.p is None else row.p for row in comparisons])
    attainable = holm([row.attainable_p for row in comparisons])
    decided = []
    for row, p, least_p in zip(comparisons, corrected, attainable, strict=True):
        decided.append(_decided(row, family, len(comparisons), p, least_p))
    return decided


def _decided(row: PairedComparison, family: str, n_family: int, p: float, attainable: float) -> PairedComparison:
    outcome, reason = _outcome(row, p, attainable)
    detectable = None
    if reason not in UNTESTED and row.deviation:
        shift = detectable_shift(row.n_paired, row.alpha / n_family)
        if shift is not None:
            detectable = shift * row.deviation
    return replace(
        row,
        outcome=outcome,
        reason=reason,
        family=family,
        n_family=n_family,
        p_holm=p if row.n_paired else None,
        detectable=detectable,
    )


def _outcome(row: PairedComparison, p_corrected: float, attainable: float) -> tuple[str, str | None]:
    """The outcome of the first method against the second, and why it is unknown."""
    if row.is_small:
        return UNKNOWN, TOO_SMALL
    if 0 < row.n_paired == row.n_zero:
        return SAME, None
    are_few_datasets = row.scope == "across_datasets" and row.n_paired < MIN_PAIRS_ACROSS
    if attainable > row.alpha or are_few_datasets:
        return UNKNOWN, TOO_FEW if row.is_whole else INCOMPLETE
    if p_corrected > row.alpha:
        return UNKNOWN, NOT_SIGNIFICANT
    return BETTER if row.leads else WORSE, None
