"""Judges how well each criterion selects settings: regret to the oracle, and rank correlation with the target score.

The oracle selects the candidate that is best on the target's test labels. It serves to judge criteria. A method's
result is the oracle's only if the suite sets `by: oracle`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import pandas as pd

from msda_bench.results.decision import Row
from msda_bench.results.door import Kind
from msda_bench.results.estimates import mean_of, summarize, tied
from msda_bench.results.frame import AVERAGE, runs_of
from msda_bench.results.select import Trials
from msda_bench.suite.cell import canonical_json
from msda_bench.suite.plan import CHANCE, LEAVE_ONE_OUT, ORACLE, Experiment, Method

ALL = "all methods"
"""The entry for the mean over methods in the column of method names, which contain no blank."""
COLUMNS = (
    *("suite", "experiment", "target", "method", "criterion", "target_labels", "selects", "metric"),
    *("n", "n_planned", "mean", "regret", "regret_standard_error", "n_regret"),
    *("rank_correlation", "rank_correlation_standard_error", "n_rank_correlation"),
)
"""The columns of selection.csv, explained in docs/selection.md."""
CANDIDATE_COLUMNS = (
    *("suite", "experiment", "target", "method", "candidate", "settings", "criterion", "target_labels"),
    *("n", "n_planned", "mean", "n_selected"),
)
"""The columns of candidates.csv."""
MIN_RANKED = 3
"""The number of candidates or sources below which a rank correlation is meaningless."""

_Scores: TypeAlias = Mapping[tuple[str, str, int], float]
"""Test scores by method, target and seed; higher is better."""
_OfMethod: TypeAlias = Mapping[int, float]
"""Scores of one method in one column, by seed."""


def criteria(runs: str | Path | pd.DataFrame) -> pd.DataFrame:
    """Judges each criterion's selections, for each experiment that selects settings.

    Args:
        runs: a result folder, or a frame from `load_results` with the rows of all candidates.

    Returns:
        One row for each criterion (`chance` and `oracle` last), target (`average` last, if there are several) and
        method (`all methods` first; references are not included), in the columns of selection.csv (docs/selection.md).
        Scores are in percent, or squared errors; regrets are at least 0.
    """
    runs = runs_of(runs)
    trials = Trials(runs)
    rows = [
        {"suite": runs.attrs["plan"].suite, "experiment": table.name, **row}
        for table, methods in _searched(trials)
        for row in _judged(trials, table, [method for method in methods if not method.reference])
    ]
    return pd.DataFrame(rows, columns=[*COLUMNS])


def candidates(runs: str | Path | pd.DataFrame) -> pd.DataFrame:
    """The mean score of every candidate by every criterion, in the columns of candidates.csv (docs/selection.md)."""
    runs = runs_of(runs)
    trials = Trials(runs)
    rows = [
        {"suite": runs.attrs["plan"].suite, "experiment": table.name, **row}
        for table, methods in _searched(trials)
        for by in table.criteria
        for method in methods
        for row in _tried(trials, table, method, by)
    ]
    return pd.DataFrame(rows, columns=[*CANDIDATE_COLUMNS])


def sensitivity(runs: str | Path | pd.DataFrame) -> pd.DataFrame:
    """The score on the target as a function of each parameter with at least two numeric values: the oracle's view.

    Returns:
        `experiment, method, parameter, value, score`: a row for each candidate and each of its numeric values, with the
        candidate's mean score over targets and seeds.
    """
    runs = runs_of(runs)
    known = {table.name: table for table in runs.attrs["plan"].experiments}
    found = candidates(runs)
    whole = found[(found["criterion"] == ORACLE) & (found["target"] == AVERAGE) & found["mean"].notna()]
    rows = []
    for place in whole.itertuples():
        methods = {method.name: method.search for method in known[place.experiment].methods if method.search}
        for path, value in methods[place.method].candidates[place.candidate].items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                rows.append((place.experiment, place.method, path, float(value), place.mean))
    points = pd.DataFrame(rows, columns=["experiment", "method", "parameter", "value", "score"])
    several = points.groupby(["experiment", "parameter"])["value"].transform("nunique") > 1
    return points[several].reset_index(drop=True)


_DRAWN = ("experiment", "target", "method", "criterion", "mean", "regret", "regret_standard_error", "rank_correlation")
CRITERIA = Kind("criteria", "criteria", _DRAWN, _DRAWN[:4], _DRAWN[4:], criteria)
_POINTS = ("experiment", "method", "parameter", "value", "score")
SENSITIVITY = Kind("candidates", "sensitivity", _POINTS, _POINTS[:3], _POINTS[3:], sensitivity)


def rank_correlation(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Spearman's rho, with mean ranks for ties; None for fewer than three pairs, or if one side is constant."""
    if len(pairs) < MIN_RANKED or any(len(set(side)) == 1 for side in zip(*pairs, strict=True)):
        return None
    from scipy.stats import spearmanr

    return float(spearmanr(*(side for side in zip(*pairs, strict=True))).statistic)


def _searched(trials: Trials) -> Iterator[tuple[Experiment, list[Method]]]:
    """The experiments that select settings, with the methods whose settings they select."""
    methods = trials.methods()
    for table in trials.runs.attrs["plan"].experiments:
        mine = [method for other, method in methods if other.name == table.name]
        if table.criteria and mine:
            yield table, mine


def _columns(table: Experiment) -> list[tuple[str, tuple[str, ...]]]:
    """Each target by itself, then all targets together."""
    return [*((target, (target,)) for target in table.targets), (AVERAGE, table.targets)]


def _judged(trials: Trials, table: Experiment, methods: Sequence[Method]) -> Iterator[Row]:
    """The rows of selection.csv for one experiment."""
    oracle = _selected(trials, table, methods, ORACLE)
    shown = _columns(table) if len(table.targets) > 1 else _columns(table)[:1]  # no mean over a single target
    groups = [(ALL, list(methods)), *((method.name, [method]) for method in methods)]
    for by in (*(by for by in table.criteria if by != ORACLE), CHANCE, ORACLE):
        scores = _blind(trials, table, methods) if by == CHANCE else _selected(trials, table, methods, by)
        ranks = {} if by in {CHANCE, ORACLE} else _ranks(trials, table, methods, by)
        for target, targets in shown:
            own = {method.name: _by_seed(scores, table, method, targets) for method in methods}
            lost = {
                method.name: _losses(own[method.name], _by_seed(oracle, table, method, targets)) for method in methods
            }
            for name, group in groups:
                yield {
                    "target": target,
                    "method": name,
                    "criterion": by,
                    "target_labels": by == ORACLE,
                    "selects": any(method.search is not None and method.search.by == by for method in group),
                    "metric": table.measure.column,
                    "n_planned": len(table.seeds),
                    "n": len(merits := _common([own[method.name] for method in group])),
                    "mean": 0.0 + table.measure.sign * summarize(merits).mean,  # avoids -0.0
                    **_summary(_common([lost[method.name] for method in group]), *COLUMNS[11:14]),
                    **_summary(
                        [one for method in group for place in targets for one in ranks.get((method.name, place), ())],
                        *COLUMNS[14:],
                    ),
                }


def _summary(values: Sequence[float], mean: str, error: str, n: str) -> Row:
    return dict(zip((n, mean, error), summarize(values), strict=True))


def _selected(trials: Trials, table: Experiment, methods: Sequence[Method], by: str) -> _Scores:
    """The scores on the target of a criterion's selections."""
    return {
        (method.name, *run): merit
        for method in methods
        for run, own in trials.of(table, method).items()
        if (row := trials.choose(own, by).selected) is not None and (merit := trials.merit(row)) is not None
    }


def _blind(trials: Trials, table: Experiment, methods: Sequence[Method]) -> _Scores:
    """The mean score of the candidates that are ok, for each run in which the oracle can select."""
    found = {}
    for method in methods:
        for run, own in trials.of(table, method).items():
            if trials.choose(own, ORACLE).selected is not None:
                merits = [merit for trial in own if (merit := trials.worth(trial, ORACLE)) is not None]
                found[method.name, *run] = mean_of(merits)
    return found


def _ranks(
    trials: Trials, table: Experiment, methods: Sequence[Method], by: str
) -> Mapping[tuple[str, str], Sequence[float]]:
    """Each run's rank correlation of a criterion with the score on the target, by method and target."""
    found = defaultdict(list)
    for method in methods:
        for (target, _), own in trials.of(table, method).items():
            both = [(trials.worth(trial, by), trials.worth(trial, ORACLE)) for trial in own]
            value = rank_correlation([(one, other) for one, other in both if one is not None and other is not None])
            if value is not None:
                found[method.name, target].append(value)
    return found


def _by_seed(scores: _Scores, table: Experiment, method: Method, targets: Sequence[str]) -> dict[int, float]:
    """The means over targets, for the seeds that have a score at every target."""
    found = {}
    for seed in table.seeds:
        own = [scores[place] for target in targets if (place := (method.name, target, seed)) in scores]
        if len(own) == len(targets):
            found[seed] = tied(mean_of(own))
    return found


def _losses(own: _OfMethod, best: _OfMethod) -> dict[int, float]:
    return {seed: best[seed] - merit for seed, merit in own.items() if seed in best}


def _common(methods: Sequence[_OfMethod]) -> list[float]:
    """The mean over methods, for each seed that all methods have."""
    seeds = [seed for seed in methods[0] if all(seed in found for found in methods)] if methods else []
    return [mean_of(found[seed] for found in methods) for seed in seeds]


def _tried(trials: Trials, table: Experiment, method: Method, by: str) -> Iterator[Row]:
    """The rows of candidates.csv for one method and criterion."""
    runs = trials.of(table, method)
    selected = {row for own in runs.values() if (row := trials.choose(own, by).selected) is not None}
    sign = table.measure.sign if by in {ORACLE, LEAVE_ONE_OUT} else 1
    for target, targets in _columns(table):
        for candidate, values in enumerate(method.search.candidates if method.search else ()):
            own = [tried[candidate] for (place, _), tried in runs.items() if place in targets]
            scores = [score for trial in own if (score := trials.worth(trial, by)) is not None]
            yield {
                "target": target,
                "method": method.name,
                "candidate": candidate,
                "settings": canonical_json(values),
                "criterion": by,
                "target_labels": by == ORACLE,
                "n": len(scores),
                "n_planned": len(table.seeds) * len(targets),
                "mean": 0.0 + sign * summarize(scores).mean,
                "n_selected": sum(trial.own in selected for trial in own),
            }
