"""How well each criterion selects: regret to the oracle, and rank correlation with the target's score.

The oracle is the candidate that is best on the target's test labels. It is here to judge criteria by, and is never a
method's result unless a suite says `by: oracle`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

import numpy as np

from msda_bench.stats.exact import scaled_integers
from msda_bench.stats.scores import Column, Run, Scores, collect_scores
from msda_bench.stats.selection import Trial, Worth, resolve, trials_of, worth_of
from msda_bench.stats.summary import Summary, summarize
from msda_bench.store.record import Record
from msda_bench.suite.plan import CHANCE, ORACLE, Experiment, Plan

MIN_RANKED = 3
"""Candidates below which a rank correlation says nothing."""


@dataclass(frozen=True)
class Judged:
    """What one criterion's selection is worth for a method in a column.

    Attributes:
        by: the criterion; `CHANCE` for the mean over the candidates, which is what a blind choice expects.
        method: the method; None for the mean over all methods that are not references.
        column: a target, or None for the mean over targets.
        summary: scores of what it selects, by seed; of all methods together, nothing but their number and mean.
        regret: how much worse than what the oracle selects, by seed; at least 0.
        correlation: Spearman's rank correlation between its scores of a run's candidates and theirs on the target, run
            by run; nothing for runs with fewer than three candidates that are ok, or whose scores are all equal.
    """

    by: str
    method: str | None
    column: Column
    summary: Summary
    regret: Summary
    correlation: Summary


@dataclass(frozen=True)
class Tried:
    """One candidate of a method, over all runs where it is ok and has the criterion's score.

    Attributes:
        method: the method.
        candidate: its number.
        by: the criterion.
        column: a target, or None for all of them.
        mean: of its scores, in the criterion's own unit; None without any.
        n: runs.
        selected: in how many runs the criterion selects it.
    """

    method: str
    candidate: int
    by: str
    column: Column
    mean: float | None
    n: int
    selected: int


@dataclass(frozen=True)
class Criteria:
    """The criteria of one experiment, judged.

    Attributes:
        scores: those of the plan's own selection.
        judged: criterion by criterion, chance and oracle last; each by method, all methods first, and column.
        tried: every candidate of every method.
    """

    scores: Scores
    judged: tuple[Judged, ...]
    tried: tuple[Tried, ...]


def judge_criteria(plan: Plan, records: Mapping[str, Record]) -> tuple[Criteria, ...]:
    """Judges the criteria of each experiment that selects settings.

    Args:
        plan: what was asked for, with all candidates.
        records: by key.

    Raises:
        StoreError: a record is ok without a possible outcome.
    """
    return tuple(
        _judge(Plan(plan.suite, (table,), tuple(cell for cell in plan.cells if cell.experiment == table.name)), records)
        for table in plan.experiments
        if table.criteria
    )


def _judge(plan: Plan, records: Mapping[str, Record]) -> Criteria:
    (table,) = plan.experiments
    trials = {
        (method.name, *run): found for method in table.methods for run, found in trials_of(plan.cells, method).items()
    }
    plans = {by: resolve(plan, records, by) for by in table.criteria}
    scores = {by: collect_scores(found, records)[0] for by, found in plans.items()}
    scores[CHANCE] = _blind(scores[ORACLE], trials, records)
    order = [*(by for by in table.criteria if by != ORACLE), CHANCE, ORACLE]
    correlations = {by: _correlations(trials, records, by, table) for by in table.criteria if by != ORACLE}
    ranked = [method.name for method in table.methods if not method.reference]
    judged = [
        found
        for by in order
        for found in _of_criterion(by, scores[by], scores[ORACLE], correlations.get(by, {}), ranked)
    ]
    tried = [one for by in table.criteria for one in _tried(plan, plans[by], by, trials, records)]
    return Criteria(collect_scores(plan, records)[0], tuple(judged), tuple(tried))


def _of_criterion(
    by: str, scores: Scores, oracle: Scores, correlations: Mapping[Run, float], ranked: Sequence[str]
) -> Iterator[Judged]:
    for column in scores.shown_columns:
        losses = {name: _losses(scores, oracle, name, column) for name in ranked}
        found = {
            name: [value for run, value in correlations.items() if run[0] == name and column in (None, run[1])]
            for name in ranked
        }
        whole = [scores.by_seed(name, column) for name in ranked]
        yield Judged(
            by,
            None,
            column,
            summarize(_common(whole)),
            summarize(_common(list(losses.values()))),
            summarize([value for values in found.values() for value in values]),
        )
        for name in ranked:
            summary = summarize(scores.by_seed(name, column).values())
            yield Judged(by, name, column, summary, summarize(losses[name].values()), summarize(found[name]))


def _losses(scores: Scores, oracle: Scores, method: str, column: Column) -> dict[int, Fraction]:
    best = oracle.by_seed(method, column)
    return {
        seed: scores.sign * (best[seed] - found)
        for seed, found in scores.by_seed(method, column).items()
        if seed in best
    }


def _common(methods: Sequence[Mapping[int, Fraction]]) -> list[Fraction]:
    """The mean over methods at each seed that all of them have."""
    seeds = [seed for seed in methods[0] if all(seed in found for found in methods)] if methods else []
    return [_mean([found[seed] for found in methods]) for seed in seeds]


def _blind(oracle: Scores, trials: Mapping[Run, Sequence[Trial]], records: Mapping[str, Record]) -> Scores:
    task = oracle.experiment.task
    values = {}
    for run in oracle.values:
        ok = [trial for trial in trials[run] if records[trial.cell.key].status == "ok"]
        values[run] = oracle.sign * _mean([Fraction(worth_of(trial, records, ORACLE, task) or 0) for trial in ok])
    return replace(oracle, values=values)


def _correlations(
    trials: Mapping[Run, Sequence[Trial]], records: Mapping[str, Record], by: str, table: Experiment
) -> dict[Run, float]:
    found = {}
    for run, tried in trials.items():
        said = [_worth(trial, records, by, table.task) for trial in tried]
        true = [_worth(trial, records, ORACLE, table.task) for trial in tried]
        pairs = [
            (float(one), float(other))
            for one, other in zip(said, true, strict=True)
            if one is not None and other is not None
        ]
        if (value := rank_correlation(pairs)) is not None:
            found[run] = value
    return found


def rank_correlation(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Spearman's rho, equal values sharing a rank; None below three pairs, or where one side is constant."""
    from scipy.stats import rankdata

    if len(pairs) < MIN_RANKED:
        return None
    sides = [rankdata(side) for side in zip(*pairs, strict=True)]
    return None if any(np.ptp(side) == 0 for side in sides) else float(np.corrcoef(*sides)[0, 1])


def _tried(
    plan: Plan, resolved: Plan, by: str, trials: Mapping[Run, Sequence[Trial]], records: Mapping[str, Record]
) -> Iterator[Tried]:
    (table,) = plan.experiments
    keys = {(cell.method, cell.target, cell.seed): cell.key for cell in resolved.cells}
    columns: tuple[Column, ...] = (*table.targets, None)
    for method, column in product(table.methods, columns):
        runs = {run: found for run, found in trials.items() if run[0] == method.name and column in (None, run[1])}
        for candidate in range(len(method.search.candidates) if method.search else 0):
            at = {run: found[candidate] for run, found in runs.items()}
            scores = [_worth(trial, records, by, table.task) for trial in at.values()]
            there = [found for found in scores if found is not None]
            selected = sum(keys.get(run) == trial.cell.key for run, trial in at.items())
            yield Tried(method.name, candidate, by, column, summarize(there).mean, len(there), selected)


def _worth(trial: Trial, records: Mapping[str, Record], by: str, task: str) -> Worth | None:
    """What a criterion says of a candidate; None unless all of its runs are ok."""
    if any(cell.key not in records or records[cell.key].status != "ok" for cell in trial.cells(by)):
        return None
    return worth_of(trial, records, by, task)


def _mean(values: Sequence[Fraction]) -> Fraction:
    numerators, scale = scaled_integers(values)
    return Fraction(sum(numerators), scale * len(values))
