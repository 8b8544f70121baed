"""Two methods of two experiments, compared over the seeds that both have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from msda_bench.stats.effect import Effect, paired_effect
from msda_bench.stats.holm import holm
from msda_bench.stats.scores import Column, Scores
from msda_bench.stats.status import ComparisonStatus, comparison_status
from msda_bench.stats.summary import Summary, summarize
from msda_bench.stats.wilcoxon import SignedRank, signed_rank


@dataclass(frozen=True)
class Difference:
    """A method here and a method there, over the seeds that are ok on both sides: two folders, or two experiments.

    Attributes:
        method_a: its name on side A.
        method_b: its name on side B.
        target: the target; None for the mean over the targets.
        n_planned: seeds that both sides ask for.
        a: the scores of A over the pairs.
        b: those of B.
        test: of the differences, two-sided.
        effect: size of the differences B - A, positive where B is better; None without pairs.
        alpha: the level that status and significance speak of.
        p_holm: p, adjusted over its family (`adjusted`).
        attainable_p_holm: what p_holm would be if the whole family reached its smallest p.
    """

    method_a: str
    method_b: str
    target: Column
    n_planned: int
    a: Summary
    b: Summary
    test: SignedRank
    effect: Effect | None
    alpha: float
    p_holm: float = 1.0
    attainable_p_holm: float = 1.0

    @property
    def n_paired(self) -> int:
        """Seeds that are ok in both."""
        return self.a.n

    @property
    def tellable(self) -> bool:
        """Whether a test of so many differences could be significant at all."""
        return self.test.attainable_p <= self.alpha

    @property
    def status(self) -> ComparisonStatus:
        """What to know before reading the p-values; what is missing comes first."""
        whole = self.n_paired == self.n_planned > 0
        return comparison_status(self.test, whole=whole, tellable=self.tellable)

    @property
    def significant(self) -> bool:
        """Whether the two differ at level alpha after Holm's correction."""
        return self.tellable and self.p_holm <= self.alpha


def difference(a: Scores, b: Scores, methods: tuple[str, str], target: Column) -> Difference:
    """Compares a method of one experiment with a method of another.

    Args:
        a: an experiment.
        b: another of the same task, whose score less that of `a` is the difference.
        methods: which method of `a` with which of `b`.
        target: the target; None for the mean over the targets.
    """
    ours, theirs = a.by_seed(methods[0], target), b.by_seed(methods[1], target)
    seeds = [seed for seed in a.experiment.seeds if seed in b.experiment.seeds]
    paired = [seed for seed in seeds if seed in ours and seed in theirs]
    differences: list[Fraction] = [a.sign * (theirs[seed] - ours[seed]) for seed in paired]
    alpha = a.experiment.alpha
    return Difference(
        method_a=methods[0],
        method_b=methods[1],
        target=target,
        n_planned=len(seeds),
        a=summarize(ours[seed] for seed in paired),
        b=summarize(theirs[seed] for seed in paired),
        test=signed_rank(differences, "two-sided"),
        effect=paired_effect(differences, alpha) if differences else None,
        alpha=alpha,
    )


def adjusted(family: Sequence[Difference]) -> Iterator[Difference]:
    """The same with Holm's correction over all of them."""
    corrected = holm([one.test.p for one in family])
    attainable = holm([one.test.attainable_p for one in family])
    for one, p, smallest in zip(family, corrected, attainable, strict=True):
        yield replace(one, p_holm=p, attainable_p_holm=smallest)
