"""What each source does to a target: how much it counts, what it is worth, and what happens without it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from msda_bench.report.sources_left_out import Run, Setting, left_out, settings
from msda_bench.report.sources_worth import Worth
from msda_bench.report.weights import by_domain, final_weights
from msda_bench.stats.difference import Difference, adjusted, difference
from msda_bench.stats.scores import Scores, collect_scores
from msda_bench.stats.summary import Summary, summarize
from msda_bench.store.record import Record
from msda_bench.suite.plan import Plan

_FEWEST_RANKED = 3
"""Of fewer sources a rank correlation says nothing."""


@dataclass(frozen=True)
class Without:
    """The same runs with all sources and with all but one.

    Attributes:
        experiment: the one that leaves the source out.
        change: what it scores less what all sources score, over the seeds that are ok in both; corrected over the
            sources of the same table.
    """

    experiment: str
    change: Difference

    @property
    def transfer(self) -> str:
        """`negative`, `positive` or `not told`; `too few pairs` or `no differences` where nothing could be told."""
        change = self.change
        if change.attainable_p_holm > change.alpha:
            return "no differences" if change.test.status == "no_differences" else "too few pairs"
        if change.effect is None or change.p_holm > change.alpha:
            return "not told"
        # By the ranks that were tested, of which the mean may be on the other side.
        return "negative" if change.effect.hodges_lehmann > 0 else "positive"


@dataclass(frozen=True)
class Source:
    """One source of a method's runs at a target.

    Attributes:
        name: the domain, whole even where it is split.
        weight: its alpha in the last epoch (a moving average over steps), averaged over seeds; None where the method
            weighs no single sources.
        worth: what the dataset knows it to be worth to the target, in percent; None where it does not know.
        without: what leaving it out does; None where no experiment does so.
    """

    name: str
    weight: float | None
    worth: float | None
    without: Without | None


@dataclass(frozen=True)
class SourceTable:
    """The sources of one method at one target.

    Attributes:
        scores: whose experiment it is.
        method: the method.
        target: the target.
        score: with all sources, over the seeds that are ok.
        sources: in the order of the runs.
    """

    scores: Scores
    method: str
    target: str
    score: Summary
    sources: tuple[Source, ...]

    @property
    def rank_correlation(self) -> float | None:
        """Spearman's, of weight and worth; None where fewer than three sources have both, or one has no two values."""
        pairs = [(one.weight, one.worth) for one in self.sources if one.weight is not None and one.worth is not None]
        if len(pairs) < _FEWEST_RANKED or any(len(set(side)) == 1 for side in zip(*pairs, strict=True)):
            return None
        from scipy.stats import spearmanr

        return float(spearmanr(*zip(*pairs, strict=True)).statistic)


def source_tables(plan: Plan, records: Mapping[str, Record], worth: Worth) -> tuple[SourceTable, ...]:
    """Tables of all methods that weigh single sources, or that ran without one.

    An experiment that is there to leave a source of another out has no table of its own.

    Args:
        plan: what was asked for.
        records: by key.
        worth: asks datasets what their sources are worth.

    Raises:
        StoreError: a record is ok without a possible outcome.
    """
    found = settings(plan, records)
    scores = {one.experiment.name: one for one in collect_scores(plan, records)}
    smaller = {other.experiment for run in found for other in left_out(run, found).values()}
    return tuple(
        table
        for run in found
        if run.experiment not in smaller and (table := _table(run, found, plan, records, scores, worth))
    )


def _table(
    run: Run,
    found: Mapping[Run, Setting],
    plan: Plan,
    records: Mapping[str, Record],
    scores: Mapping[str, Scores],
    worth: Worth,
) -> SourceTable | None:
    whole, others = scores[run.experiment], left_out(run, found)
    weights = _weights(plan, records, whole, run)
    if not weights and not others:
        return None
    known = worth.of(found[run].dataset, run.target)
    without = _without(whole, run, others, scores)
    names = dict.fromkeys([*found[run].sources, *weights])
    return SourceTable(
        scores=whole,
        method=run.method,
        target=run.target,
        score=summarize(whole.by_seed(run.method, run.target).values()),
        sources=tuple(Source(name, weights.get(name), known.get(name), without.get(name)) for name in names),
    )


def _weights(plan: Plan, records: Mapping[str, Record], scores: Scores, run: Run) -> dict[str, float]:
    weights = final_weights(plan, records, scores.experiment, run.method)
    if weights is None or run.target not in weights.targets:
        return {}
    weights = by_domain(weights) or weights
    row = weights.alpha[weights.targets.index(run.target)]
    return {source: float(alpha) for source, alpha in zip(weights.sources, row, strict=True) if not math.isnan(alpha)}


def _without(whole: Scores, run: Run, others: Mapping[str, Run], scores: Mapping[str, Scores]) -> dict[str, Without]:
    family = [
        difference(whole, scores[other.experiment], (run.method, other.method), run.target) for other in others.values()
    ]
    return {
        source: Without(other.experiment, change)
        for (source, other), change in zip(others.items(), adjusted(family), strict=True)
    }
