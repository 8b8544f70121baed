"""Judges how well each criterion selects settings: regret to the oracle, and rank correlation with the target score.

The oracle selects the candidate that is best on the target's test labels. It is there to judge the criteria; a method's
own result uses it only if the suite sets `by: oracle`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from msda_bench.results.argument_checks import FrameSchema
from msda_bench.results.estimates import mean_of, summarize
from msda_bench.results.frame import AVERAGE, own_rows, runs_of
from msda_bench.results.model_selection import Candidates
from msda_bench.results.runs import results_of
from msda_bench.results.small import averaged_targets, small_tests
from msda_bench.suite.plan import CHANCE, FIRST, ORACLE, Experiment, Method, Search

ALL = "all methods"
"""The entry for the mean over methods in the column of method names, which contain no blank."""
COLUMNS = (
    *("suite", "experiment", "target", "method", "criterion", "target_labels", "selects", "metric"),
    *("n", "n_planned", "mean", "regret", "regret_standard_error", "n_regret"),
    *("rank_correlation", "rank_correlation_standard_error", "n_rank_correlation"),
)
"""The columns of `criteria`, explained in docs/selection.md."""
EVALUATED_COLUMNS = ("evaluated_mean", "evaluated_regret", "evaluated_regret_standard_error", "n_evaluated_regret")
"""Further columns where settings are chosen on tuning seeds."""
_LEGEND = (
    "regret: the loss on the target from selecting with the criterion instead of the oracle, mean and standard error "
    "over seeds; rank corr.: Spearman's rank correlation between the criterion's scores of a run's candidates and "
    "theirs on the target, mean over runs (n). References are not included. selects: whether it is the suite's."
)
_EXPLAINED = {
    ORACLE: "oracle: the candidate best on the target's own test labels, which are not available in practice.",
    CHANCE: "chance: the mean over the candidates, the expected score of a random choice.",
}
_MIN_RANKED = 3
"""The number of candidates below which a rank correlation is meaningless."""

_Scores: TypeAlias = Mapping[tuple[str, int], Mapping[int, float]]
"""The scores of each run's candidates, by target and seed."""
_Array: TypeAlias = NDArray[np.float64]
"""A value of each run, NaN where there is none: (methods, targets, seeds)."""


def criteria(runs: str | Path | pd.DataFrame) -> pd.DataFrame:
    """Judges each criterion's selections, for each experiment that selects settings.

    Args:
        runs: a result folder, or a frame from `load_results` with the rows of all candidates.

    Returns:
        One row for each criterion (`chance` and `oracle` last), target (`average` last, if there are several) and
        method (`all methods` first; references are not included), in the columns that docs/selection.md explains.
        Scores are in percent, or squared errors; regrets are at least 0.
    """
    return criteria_of(Candidates(runs_of(runs)))


def criteria_of(candidates: Candidates) -> pd.DataFrame:
    """What `criteria` returns for the runs of these candidates."""
    plan = candidates.results.plan
    rows: list[dict[str, Any]] = []
    for table, methods in _searched(candidates):
        judged = [method for method in methods if not method.reference]
        if judged:
            rows += _judgements(candidates, table, judged)
    columns = list(COLUMNS)
    if any(table.tuning is not None for table in plan.experiments):
        columns += EVALUATED_COLUMNS
    frame = pd.DataFrame(rows, columns=columns)
    frame["suite"] = plan.suite
    return frame


def sensitivity(runs: str | Path | pd.DataFrame) -> pd.DataFrame:
    """The score on the target by the value of each parameter that has at least two numeric values.

    Returns:
        `experiment, method, parameter, value, score`: a row for each candidate and each of its numeric values, with the
        candidate's mean score over targets and seeds.
    """
    return sensitivity_of(Candidates(runs_of(runs)))


def sensitivity_of(candidates: Candidates) -> pd.DataFrame:
    """What `sensitivity` returns for the runs of these candidates."""
    rows: list[tuple[str, str, str, float, float]] = []
    for table, methods in _searched(candidates):
        for method in methods:
            if method.search is not None:
                rows += _points(candidates, table, method, method.search)
    points = pd.DataFrame(rows, columns=["experiment", "method", "parameter", "value", "score"])
    several = points.groupby(["experiment", "parameter"])["value"].transform("nunique") > 1
    return points[several].reset_index(drop=True)


def _points(
    candidates: Candidates, table: Experiment, method: Method, search: Search
) -> Iterator[tuple[str, str, str, float, float]]:
    """The rows of `sensitivity` of one method."""
    runs = candidates.of(table, method, votes=True).values()
    scores_of_runs = [candidates.scores([run], ORACLE) for run in runs]
    for number, values in enumerate(search.candidates):
        merits = [scores[number] for scores in scores_of_runs if number in scores]
        if not merits:
            continue
        score = 0.0 + table.measure.sign * mean_of(merits)  # avoids -0.0
        for path, value in values.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                yield table.name, method.name, path, float(value), score


def criteria_notes(rows: pd.DataFrame) -> list[str]:
    """Explains the rows of `criteria`, and the criteria that are not validators."""
    lines = [_LEGEND]
    for by in rows["criterion"].unique():
        if by in _EXPLAINED:
            lines.append(_EXPLAINED[by])
    return lines


_DRAWN = ("experiment", "target", "method", "criterion", "mean", "regret", "regret_standard_error", "rank_correlation")
CRITERIA = FrameSchema("criteria", "criteria", _DRAWN, _DRAWN[:4], _DRAWN[4:], criteria)
_POINTS = ("experiment", "method", "parameter", "value", "score")
SENSITIVITY = FrameSchema("candidates", "sensitivity", _POINTS, _POINTS[:3], _POINTS[3:], sensitivity)


def _searched(candidates: Candidates) -> Iterator[tuple[Experiment, list[Method]]]:
    """The experiments that select settings, with their methods that have candidates."""
    for table in results_of(candidates.runs).plan.experiments:
        if not table.criteria:
            continue
        searched = candidates.methods(table)
        if searched:
            yield table, searched


def _judgements(candidates: Candidates, table: Experiment, methods: Sequence[Method]) -> Iterator[dict[str, Any]]:
    """The rows of one experiment: each target by itself, then all targets together if there are several."""
    columns = {target: [place] for place, target in enumerate(table.targets)}
    if len(table.targets) > 1:
        small = small_tests(own_rows(table, candidates.runs))
        averaged = averaged_targets(table.targets, small)
        columns[AVERAGE] = [table.targets.index(target) for target in averaged]
    groups = {ALL: list(range(len(methods)))}
    for place, method in enumerate(methods):
        groups[method.name] = [place]
    best = _merits(candidates, table, methods, ORACLE, votes=True)
    best_evaluated = _merits(candidates, table, methods, ORACLE, votes=False)
    known = _oracle_scores(candidates, table, methods)
    validators = [by for by in table.criteria if by != ORACLE]
    for by in (*validators, CHANCE, ORACLE):
        merits = _merits(candidates, table, methods, by, votes=True)
        evaluated = _merits(candidates, table, methods, by, votes=False)
        ranks = _ranks(candidates, table, methods, by, known)
        for target, places in columns.items():
            own = merits[:, places].mean(axis=1)
            regrets = (best - merits)[:, places].mean(axis=1)
            own_evaluated = evaluated[:, places].mean(axis=1)
            evaluated_regrets = (best_evaluated - evaluated)[:, places].mean(axis=1)
            for name, group in groups.items():
                scores = _mean(own, group)
                search = methods[group[0]].search
                yield {
                    "experiment": table.name,
                    "target": target,
                    "method": name,
                    "criterion": by,
                    "target_labels": by == ORACLE,
                    "selects": search is not None and search.by == by,
                    "metric": table.measure.column,
                    "n_planned": len(_voting_seeds(table)),
                    "n": int((~np.isnan(scores)).sum()),
                    **_summary("mean", _as_score(table, scores)),
                    **_summary("regret", _mean(regrets, group)),
                    **_summary("rank_correlation", ranks[group][:, places].ravel()),
                    **_summary("evaluated_mean", _as_score(table, _mean(own_evaluated, group))),
                    **_summary("evaluated_regret", _mean(evaluated_regrets, group)),
                }


def _voting_seeds(table: Experiment) -> Sequence[int]:
    return table.seeds if table.tuning is None else table.tuning.seeds


def _mean(by_method: _Array, methods: Sequence[int]) -> _Array:
    """The mean by seed over some methods, from (methods, seeds)."""
    mean: _Array = by_method[methods[0]] if len(methods) == 1 else by_method[methods].mean(axis=0)
    return mean


def _as_score(table: Experiment, merits: _Array) -> _Array:
    """The scores of merits, of which higher ones are better, whatever the metric."""
    return 0.0 + table.measure.sign * merits  # avoids -0.0


def _summary(name: str, values: _Array) -> dict[str, Any]:
    n, mean, error = summarize(values[~np.isnan(values)].tolist())
    return {name: mean, f"{name}_standard_error": error, f"n_{name}": n}


def _oracle_scores(candidates: Candidates, table: Experiment, methods: Sequence[Method]) -> list[_Scores]:
    """The scores on the target of each method's candidates."""
    of_methods: list[_Scores] = []
    for method in methods:
        runs = candidates.of(table, method, votes=True)
        of_methods.append({place: candidates.scores([run], ORACLE) for place, run in runs.items()})
    return of_methods


def _merits(candidates: Candidates, table: Experiment, methods: Sequence[Method], by: str, *, votes: bool) -> _Array:
    """The target scores of a criterion's choices, for chance the mean over the candidates; higher is better.

    With `votes` they are from the seeds that select, otherwise from the reported seeds if there are tuning seeds.
    """
    seeds = _voting_seeds(table) if votes else table.seeds
    merits = np.full((len(methods), len(table.targets), len(seeds)), np.nan)
    if not votes and (table.tuning is None or by == CHANCE):
        return merits
    for place, method in enumerate(methods):
        choices = candidates.choices(table, method, ORACLE if by == CHANCE else by)
        numbers = {(choice.target, choice.seed): choice.number for choice in choices}
        for (target, seed), run in candidates.of(table, method, votes=votes).items():
            voting_seed = seed if table.tuning is None else None
            number = numbers[target, voting_seed]
            if number not in run:
                continue
            merit = candidates.merit(run[number])
            if by == CHANCE:
                merit = mean_of(candidates.scores([run], ORACLE).values())
            merits[place, table.targets.index(target), seeds.index(seed)] = merit
    return merits


def _ranks(
    candidates: Candidates, table: Experiment, methods: Sequence[Method], by: str, known: Sequence[_Scores]
) -> _Array:
    """Each run's rank correlation between a criterion and the score on the target; `known` has these by method."""
    seeds = _voting_seeds(table)
    correlations = np.full((len(methods), len(table.targets), len(seeds)), np.nan)
    if by in {CHANCE, FIRST, ORACLE}:
        return correlations
    for place, method in enumerate(methods):
        for (target, seed), run in candidates.of(table, method, votes=True).items():
            on_target = known[place][target, seed]
            pairs = []
            for number, score in candidates.scores([run], by).items():
                if number in on_target:
                    pairs.append((score, on_target[number]))
            correlations[place, table.targets.index(target), seeds.index(seed)] = _rank_correlation(pairs)
    return correlations


def _rank_correlation(pairs: Sequence[tuple[float, float]]) -> float:
    """Spearman's rho, with mean ranks for ties; NaN for fewer than three pairs, or if one side is constant."""
    if len(pairs) < _MIN_RANKED:
        return np.nan
    sides = np.array(pairs).T[:, :, None]
    if (sides == sides[:, :1]).all(axis=1).any():
        return np.nan
    twice = (sides > sides.mT).sum(axis=2) + (sides >= sides.mT).sum(axis=2)
    # Whole numbers, so that the correlation of equal ranks is exactly 1.
    away = len(pairs) * twice - twice.sum(axis=1, keepdims=True)
    (own, both), (_, other) = (away @ away.T).tolist()
    return float(both / math.sqrt(own * other))
