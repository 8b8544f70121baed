"""Every pair of methods of an experiment, compared over paired runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from typing import Literal, TypeAlias

from msda_bench.stats.bootstrap import Draws, Estimate
from msda_bench.stats.effect import Effect, paired_effect
from msda_bench.stats.exact import Number
from msda_bench.stats.false_discovery import benjamini_hochberg
from msda_bench.stats.holm import holm
from msda_bench.stats.improvement import Rival, probability_of_improvement
from msda_bench.stats.merits import Merits, merits
from msda_bench.stats.scores import AVERAGE, Column, Scores
from msda_bench.stats.status import ComparisonStatus, comparison_status
from msda_bench.stats.wilcoxon import SignedRank, signed_rank_tests

Scope: TypeAlias = Literal["target", "average", "across_targets", "across_datasets"]

MIN_TARGETS = 6
"""Across targets or datasets, fewer pairs than this cannot reach 0.05 in a two-sided test, so they are refused."""


@dataclass(frozen=True)
class Comparison:
    """Two methods over the pairs that both have. Differences are positive where `first` is better.

    Attributes:
        scope: target (pairs are seeds), average (pairs are seeds, each the mean over targets), across_targets (pairs
            are targets, each the mean over seeds) or across_datasets (pairs are datasets, each the mean over targets
            and seeds).
        target: the target; None for the other scopes.
        first: the method that stands first in the table.
        second: the other.
        n_planned: pairs asked for.
        n_paired: pairs at hand.
        complete: whether every planned run stands behind the pairs.
        test: the two-sided test.
        p_first: one-sided p of `first` being better.
        p_second: one-sided p of `second` being better.
        effect: size of the differences; None without pairs.
        p_holm: two-sided p, adjusted over all pairs of methods of the same scope and target.
        attainable_p_holm: what p_holm would be if every pair of methods reached its smallest two-sided p.
        alpha: the level that status and significance speak of.
        p_bh: two-sided p, adjusted after Benjamini and Hochberg over the same pairs as p_holm.
        improvement: probability that a run of `first` beats one of `second`; None without pairs and in both scopes
            across.
    """

    scope: Scope
    target: str | None
    first: str
    second: str
    n_planned: int
    n_paired: int
    complete: bool
    test: SignedRank
    p_first: float
    p_second: float
    effect: Effect | None
    alpha: float
    p_holm: float = 1.0
    attainable_p_holm: float = 1.0
    p_bh: float = 1.0
    improvement: Estimate | None = None

    @property
    def column(self) -> str:
        """The target, or what stands in its place."""
        return self.target if self.target is not None else AVERAGE if self.scope == "average" else self.scope

    @property
    def better(self) -> str | None:
        """The better of the two by the mean of the pairs; None where there is none."""
        if self.effect is None or self.effect.mean == 0:
            return None
        return self.first if self.effect.mean > 0 else self.second

    @property
    def p_one_sided(self) -> float:
        """The p of the better one being better; of `first` where their means are equal."""
        return self.p_second if self.better == self.second else self.p_first

    @property
    def attainable_p(self) -> float:
        """The smallest one-sided p that so many differences can give."""
        return 0.5**self.test.n

    @property
    def tellable(self) -> bool:
        """Whether a one-sided test of so many differences could be significant at all."""
        refused = self.scope in {"across_targets", "across_datasets"} and self.n_paired < MIN_TARGETS
        return self.attainable_p <= self.alpha and not refused

    @property
    def status(self) -> ComparisonStatus:
        """What to know before reading the p-values; what is missing comes first."""
        whole = self.complete and self.n_paired >= self.n_planned
        return comparison_status(self.test, whole=whole, tellable=self.tellable)

    @property
    def significant(self) -> bool:
        """Whether the two differ at level alpha after Holm's correction; never where too few pairs could tell."""
        return self.tellable and self.p_holm <= self.alpha


def compare_methods(scores: Scores, draws: Draws | None = None) -> tuple[Comparison, ...]:
    """Compares all pairs of methods but references: at each target, on the mean over targets, and across targets.

    Args:
        scores: of one experiment.
        draws: resamples for the intervals; their own if None.

    Returns:
        Target by target, then average, then across_targets; pairs in table order.
    """
    names = [one.name for one in scores.experiment.methods if not one.reference]
    pairs = list(combinations(names, 2))
    columns = {column: merits(scores, column, names if pairs else ()) for column in scores.columns}
    improvements = _improvements(scores, columns, names, draws or Draws())
    comparisons: list[Comparison] = []
    for column, found in columns.items():
        comparisons += adjusted(
            [_over_seeds(scores, found, column, pair, improvements[pair, column]) for pair in pairs]
        )
    return (*comparisons, *adjusted([_across_targets(scores, columns, pair) for pair in pairs]))


_Pair: TypeAlias = tuple[str, str]


def _improvements(
    scores: Scores, columns: Mapping[Column, Merits], names: Sequence[str], draws: Draws
) -> dict[tuple[_Pair, Column], Estimate | None]:
    """By the second method, because what is made of its runs serves all that stand before it."""
    targets, alpha = scores.experiment.targets, scores.experiment.alpha
    found: dict[tuple[_Pair, Column], Estimate | None] = {}
    for place, second in enumerate(names):
        rivals: dict[tuple[str, tuple[int, ...]], Rival] = {}
        for first in names[:place]:
            shares = []
            for target in targets:
                ours, theirs = columns[target].paired(first, second)
                # Where runs are missing not all pairs have the same seeds.
                known = (target, tuple(theirs))
                if known not in rivals:
                    rivals[known] = Rival(theirs, target, draws)
                shares.append(rivals[known].share(ours))
                found[(first, second), target] = probability_of_improvement(shares[-1:], alpha)
            found[(first, second), None] = probability_of_improvement(shares, alpha)
    return found


def _over_seeds(scores: Scores, found: Merits, column: Column, pair: _Pair, improvement: Estimate | None) -> Comparison:
    experiment = scores.experiment
    differences = found.differences(*pair)
    return compared(
        "average" if column is None else "target",
        column,
        pair,
        differences,
        len(experiment.seeds),
        complete=len(differences) == len(experiment.seeds),
        alpha=experiment.alpha,
        unit=Fraction(1, found.scale),
        improvement=improvement,
    )


def _across_targets(scores: Scores, columns: Mapping[Column, Merits], pair: _Pair) -> Comparison:
    experiment = scores.experiment
    means, complete = [], True
    for target in experiment.targets:
        differences = columns[target].differences(*pair)
        complete &= len(differences) == len(experiment.seeds)
        if differences:
            means.append(Fraction(sum(differences), len(differences) * columns[target].scale))
    targets = len(experiment.targets)
    return compared("across_targets", None, pair, means, targets, complete=complete, alpha=experiment.alpha)


def compared(
    scope: Scope,
    target: str | None,
    pair: tuple[str, str],
    differences: Sequence[Number],
    n_planned: int,
    *,
    complete: bool,
    alpha: float,
    unit: Fraction = Fraction(1),
    improvement: Estimate | None = None,
) -> Comparison:
    """One comparison, not yet adjusted for the others of its family.

    Args:
        scope: what a pair is.
        target: the target; None for the other scopes.
        pair: the first method and the second.
        differences: merit of the first - merit of the second, a pair each.
        n_planned: pairs asked for.
        complete: whether every planned run stands behind the pairs.
        alpha: the level.
        unit: what the differences are multiples of.
        improvement: probability that a run of the first beats one of the second.
    """
    tests = signed_rank_tests(differences)
    return Comparison(
        scope=scope,
        target=target,
        first=pair[0],
        second=pair[1],
        n_planned=n_planned,
        n_paired=len(differences),
        complete=complete,
        test=tests["two-sided"],
        p_first=tests["greater"].p,
        p_second=tests["less"].p,
        effect=paired_effect(differences, alpha, unit) if differences else None,
        alpha=alpha,
        improvement=improvement,
    )


def adjusted(family: Sequence[Comparison]) -> list[Comparison]:
    """The comparisons of one family, with their p-values adjusted for each other."""
    p_values = [comparison.test.p for comparison in family]
    attainable = holm([comparison.test.attainable_p for comparison in family])
    return [
        replace(comparison, p_holm=p_holm, attainable_p_holm=smallest, p_bh=p_bh)
        for comparison, p_holm, smallest, p_bh in zip(
            family, holm(p_values), attainable, benjamini_hochberg(p_values), strict=True
        )
    ]
