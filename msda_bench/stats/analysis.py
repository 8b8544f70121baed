"""All that the tables say, computed once: means, ranks, bold sets and comparisons of each experiment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from msda_bench.stats.bold import Bold, bold_sets, enough_pairs
from msda_bench.stats.bootstrap import Draws, Estimate, Interval, bootstrap_mean, interquartile_mean
from msda_bench.stats.compare import Comparison, compare_methods
from msda_bench.stats.scores import Column, Scores, collect_scores
from msda_bench.stats.summary import Summary, summarize
from msda_bench.stats.transfer import Transfer, transfers
from msda_bench.store.record import Record
from msda_bench.suite.plan import Plan


@dataclass(frozen=True)
class Entry:
    """What stands where a method's row meets a column.

    Attributes:
        summary: of the seeds that are ok.
        counts: seeds by status.
        rank: 1 for the best by mean, equal means sharing a rank; None for references and where there are no runs.
        bold_paper: whether it is in the paper's bold set; None where that cannot be told.
        bold_holm: likewise after Holm's correction.
        interval: stratified bootstrap interval of the mean, level 1 - alpha; None where there are too few runs for one.
        iqm: interquartile mean of the runs that the mean is of, with its interval; None where there are none.
        transfer: what the method gains over the baseline, and what it lacks to the oracle.
    """

    summary: Summary
    counts: Counter[str]
    rank: int | None
    bold_paper: bool | None
    bold_holm: bool | None
    interval: Interval | None
    iqm: Estimate | None
    transfer: Transfer


@dataclass(frozen=True)
class Analysis:
    """One experiment, analysed.

    Attributes:
        scores: its runs.
        entries: by method and column.
        comparisons: of all pairs of methods.
    """

    scores: Scores
    entries: Mapping[tuple[str, Column], Entry]
    comparisons: tuple[Comparison, ...]


def analyse(plan: Plan, records: Mapping[str, Record]) -> tuple[Analysis, ...]:
    """Analyses each experiment of a plan.

    Args:
        plan: what was asked for.
        records: by key; runs whose key is not there are missing.

    Returns:
        The analyses, in the plan's order; the same whatever the order of the records.

    Raises:
        StoreError: a record is ok without a possible outcome.
    """
    draws = Draws()
    return tuple(_analyse(scores, draws) for scores in collect_scores(plan, records))


def _analyse(scores: Scores, draws: Draws) -> Analysis:
    comparisons = compare_methods(scores, draws)
    entries: dict[tuple[str, Column], Entry] = {}
    for column in scores.columns:
        pairs = [pair for pair in comparisons if pair.scope != "across_targets" and pair.target == column]
        entries |= _entries(scores, column, pairs, draws)
    return Analysis(scores, entries, comparisons)


def _entries(
    scores: Scores, column: Column, pairs: Sequence[Comparison], draws: Draws
) -> dict[tuple[str, Column], Entry]:
    methods = scores.experiment.methods
    alpha = scores.experiment.alpha
    summaries = {method.name: summarize(scores.by_seed(method.name, column).values()) for method in methods}
    merits = {
        method.name: scores.sign * mean
        for method in methods
        if not method.reference and (mean := summaries[method.name].mean) is not None
    }
    enough = {name: merit for name, merit in merits.items() if enough_pairs(summaries[name].n, alpha)}
    ranks = {name: 1 + sum(other > merit for other in merits.values()) for name, merit in merits.items()}
    bold: Bold = bold_sets(enough, pairs, alpha)
    transfer = transfers(scores, column)
    entries = {}
    for name, summary in summaries.items():
        runs = scores.by_target(name, column)
        entries[name, column] = Entry(
            summary=summary,
            counts=scores.counts(name, column),
            rank=ranks.get(name),
            bold_paper=bold.paper.get(name),
            bold_holm=bold.holm.get(name),
            interval=bootstrap_mean(runs, draws, alpha),
            iqm=interquartile_mean(runs, draws, alpha),
            transfer=transfer[name],
        )
    return entries
