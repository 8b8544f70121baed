"""Judges how well each criterion selects settings: regret to the oracle, and rank correlation with the target score.

The oracle selects the candidate that is best on the target's test labels. It serves to judge criteria. A method's
result is the oracle's only if the suite sets `by: oracle`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import correlation
from typing import TypeAlias

import pandas as pd

from msda_bench.results.decision import Row
from msda_bench.results.door import Kind
from msda_bench.results.estimates import mean_of, summarize, tied
from msda_bench.results.frame import AVERAGE, own_rows, runs_of
from msda_bench.results.scores import mean_by_seed
from msda_bench.results.searches import Candidate, Searches
from msda_bench.suite.plan import CHANCE, FIRST, LEAVE_ONE_OUT, ORACLE, Experiment, Method

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
    "theirs on the target, mean over runs (n). References are not included. *: the criterion of this suite."
)
_EXPLAINED = {
    ORACLE: "oracle: the candidate best on the target's own test labels, which are not available in practice.",
    CHANCE: "chance: the mean over the candidates, the expected score of a random choice.",
    LEAVE_ONE_OUT: "leave_one_source_out: each source in turn is the target of the others, scored on its test part.",
}
MIN_RANKED = 3
"""The number of candidates or sources below which a rank correlation is meaningless."""

_Place: TypeAlias = tuple[str, str]
"""A method and a target."""
_Tried: TypeAlias = Sequence[Candidate]
_Merits: TypeAlias = Mapping[_Place, Mapping[int, float]]
"""Test scores by place, then by seed; higher is better."""
_BySeed: TypeAlias = Mapping[str, Mapping[int, float]]
"""Scores by method, then by seed."""


def criteria(runs: str | Path | pd.DataFrame) -> pd.DataFrame:
    """Judges each criterion's selections, for each experiment that selects settings.

    Args:
        runs: a result folder, or a frame from `load_results` with the rows of all candidates.

    Returns:
        One row for each criterion (`chance` and `oracle` last), target (`average` last, if there are several) and
        method (`all methods` first; references are not included), in the columns that docs/selection.md explains.
        Scores are in percent, or squared errors; regrets are at least 0.
    """
    runs = runs_of(runs)
    searches = Searches(runs)
    rows = [
        {"suite": runs.attrs["plan"].suite, "experiment": table.name, **row}
        for table, methods in _searched(searches)
        for row in _judgements(searches, table, [method for method in methods if not method.reference])
    ]
    tuned = any(table.tuning is not None for table in runs.attrs["plan"].experiments)
    return pd.DataFrame(rows, columns=[*COLUMNS, *(EVALUATED_COLUMNS if tuned else ())])


def sensitivity(runs: str | Path | pd.DataFrame) -> pd.DataFrame:
    """The score on the target as a function of each parameter with at least two numeric values: the oracle's view.

    Returns:
        `experiment, method, parameter, value, score`: a row for each candidate and each of its numeric values, with the
        candidate's mean score over targets and seeds.
    """
    searches = Searches(runs_of(runs))
    rows = []
    for table, methods in _searched(searches):
        for method in methods:
            scored = [searches.scores(tried, ORACLE) for tried in searches.of(table, method).values()]
            for number, values in enumerate(method.search.candidates if method.search else ()):
                merits = [merit for scores in scored if (merit := scores[number]) is not None]
                score = 0.0 + table.measure.sign * mean_of(merits)  # avoids -0.0
                for path, value in values.items():
                    if merits and isinstance(value, int | float) and not isinstance(value, bool):
                        rows.append((table.name, method.name, path, float(value), score))
    points = pd.DataFrame(rows, columns=["experiment", "method", "parameter", "value", "score"])
    several = points.groupby(["experiment", "parameter"])["value"].transform("nunique") > 1
    return points[several].reset_index(drop=True)


def criteria_notes(rows: pd.DataFrame) -> list[str]:
    """Explains the rows of `criteria`, and the criteria that are not validators."""
    return [_LEGEND, *(_EXPLAINED[by] for by in rows["criterion"].unique() if by in _EXPLAINED)]


_DRAWN = ("experiment", "target", "method", "criterion", "mean", "regret", "regret_standard_error", "rank_correlation")
CRITERIA = Kind("criteria", "criteria", _DRAWN, _DRAWN[:4], _DRAWN[4:], criteria)
_POINTS = ("experiment", "method", "parameter", "value", "score")
SENSITIVITY = Kind("candidates", "sensitivity", _POINTS, _POINTS[:3], _POINTS[3:], sensitivity)


def rank_correlation(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Spearman's rho, with mean ranks for ties; None for fewer than three pairs, or if one side is constant."""
    if len(pairs) < MIN_RANKED or any(len(set(side)) == 1 for side in zip(*pairs, strict=True)):
        return None
    return correlation(*(_ranks(side) for side in zip(*pairs, strict=True)))


def _ranks(values: Sequence[float]) -> list[float]:
    """Twice the mean ranks, which correlate like the ranks."""
    ordered = sorted(values)
    return [bisect_left(ordered, value) + bisect_right(ordered, value) for value in values]


def _searched(searches: Searches) -> Iterator[tuple[Experiment, list[Method]]]:
    """The experiments that select settings, with the methods whose settings they select."""
    methods = searches.methods()
    for table in searches.runs.attrs["plan"].experiments:
        searched = [method for other, method in methods if other.name == table.name]
        if table.criteria and searched:
            yield table, searched


def _columns(table: Experiment) -> list[tuple[str, tuple[str, ...]]]:
    """Each target by itself, then all targets together."""
    return [*((target, (target,)) for target in table.targets), (AVERAGE, table.targets)]


def _judgements(searches: Searches, table: Experiment, methods: Sequence[Method]) -> Iterator[Row]:
    """The rows of one experiment."""
    columns = _columns(table) if len(table.targets) > 1 else _columns(table)[:1]  # no mean over a single target
    groups = {ALL: methods} | {method.name: [method] for method in methods}
    seeds = table.tuning.seeds if table.tuning is not None else table.seeds
    tested = _tested(searches, table)
    best = _by_column(_selected(searches, table, methods, ORACLE), methods, columns)
    best_evaluated = _by_column(_evaluated(searches, table, ORACLE, tested), methods, columns)
    for by in (*(by for by in table.criteria if by != ORACLE), CHANCE, ORACLE):
        merits = _by_column(_selected(searches, table, methods, by), methods, columns)
        ranks = {} if by in {CHANCE, FIRST, ORACLE} else _ranked(searches, table, methods, by)
        evaluated = _by_column(_evaluated(searches, table, by, tested), methods, columns)
        for target, targets in columns:
            regrets, later = _regrets(best[target], merits[target]), _regrets(best_evaluated[target], evaluated[target])
            for name, group in groups.items():
                names = [method.name for method in group]
                scores, lost, after, lost_after = (
                    mean_by_seed([of[method] for method in names]).values()
                    for of in (merits[target], regrets, evaluated[target], later)
                )
                correlations = [rho for method in names for place in targets for rho in ranks.get((method, place), ())]
                yield {
                    "target": target,
                    "method": name,
                    "criterion": by,
                    "target_labels": by == ORACLE,
                    "selects": any(method.search is not None and method.search.by == by for method in group),
                    "metric": table.measure.column,
                    "n_planned": len(seeds),
                    "n": len(scores),
                    "mean": 0.0 + table.measure.sign * mean_of(scores),  # avoids -0.0
                    **_summary("regret", lost),
                    **_summary("rank_correlation", correlations),
                    "evaluated_mean": 0.0 + table.measure.sign * mean_of(after),
                    **_summary("evaluated_regret", lost_after),
                }


def _summary(name: str, values: Iterable[float]) -> Row:
    n, mean, error = summarize(values)
    return {name: mean, f"{name}_standard_error": error, f"n_{name}": n}


def _runs(searches: Searches, table: Experiment, methods: Sequence[Method]) -> Iterator[tuple[_Place, int, _Tried]]:
    """The candidates of each run, with its method and target, and its seed."""
    for method in methods:
        for (target, seed), tried in searches.of(table, method).items():
            yield (method.name, target), seed, tried


def _selected(searches: Searches, table: Experiment, methods: Sequence[Method], by: str) -> _Merits:
    """The scores on the target of a criterion's selections; by chance, the means over the candidates that are ok."""
    merits: dict[_Place, dict[int, float]] = defaultdict(dict)
    chosen = _rows(searches, table, methods, ORACLE if by == CHANCE else by)
    for place, seed, tried in _runs(searches, table, methods):
        row = chosen[place][seed]
        merit = searches.merit(row) if row is not None else None
        if merit is not None and by == CHANCE:
            scores = searches.scores(tried, ORACLE)
            merit = mean_of(score for score in scores if score is not None)
        if merit is not None:
            merits[place][seed] = merit
    return merits


def _tested(searches: Searches, table: Experiment) -> Sequence[tuple[str, str, int, int, float]]:
    """Method, target, candidate, seed and score of each ok run at the evaluated seeds; none without tuning seeds."""
    if table.tuning is None:
        return ()
    rows = own_rows(table, searches.runs)
    rows = rows[(rows["status"] == "ok") & rows["seed"].isin(table.seeds)]
    columns = (rows[name].tolist() for name in ("method", "target", "candidate", "seed", "score"))
    return [*zip(*columns, strict=True)]


def _evaluated(
    searches: Searches, table: Experiment, by: str, tested: Sequence[tuple[str, str, int, int, float]]
) -> _Merits:
    """The scores at the evaluated seeds of what a criterion chose on the tuning seeds, where that was trained."""
    if not tested or by == CHANCE:
        return {}
    merits: dict[_Place, dict[int, float]] = defaultdict(dict)
    chosen = {(method.name, target, once.number) for method, target, once in searches.track(table, by)}
    for method, target, candidate, seed, score in tested:
        if (method, target, candidate) in chosen:
            merits[method, target][seed] = table.measure.sign * score
    return merits


def _rows(
    searches: Searches, table: Experiment, methods: Sequence[Method], by: str
) -> Mapping[_Place, Mapping[int, int | None]]:
    """The row of each run's candidate that a criterion selects, alone or on all tuning seeds; None without any."""
    rows: dict[_Place, dict[int, int | None]] = defaultdict(dict)
    once = {(method.name, target): choice.number for method, target, choice in searches.track(table, by, methods)}
    for method in methods:
        for (target, seed), tried in searches.of(table, method).items():
            place = method.name, target
            if table.tuning is not None:
                at = (candidate.row for candidate in tried if candidate.number == once[place])
                rows[place][seed] = next(at, None)
            else:
                choice = searches.choose(tried, by)
                rows[place][seed] = choice.row if choice.is_selected else None
    return rows


def _ranked(
    searches: Searches, table: Experiment, methods: Sequence[Method], by: str
) -> Mapping[_Place, Sequence[float]]:
    """Each run's rank correlation of a criterion with the score on the target."""
    correlations = defaultdict(list)
    for place, _, tried in _runs(searches, table, methods):
        scores = zip(searches.scores(tried, by), searches.scores(tried, ORACLE), strict=True)
        rho = rank_correlation([(mine, true) for mine, true in scores if mine is not None and true is not None])
        if rho is not None:
            correlations[place].append(rho)
    return correlations


def _by_column(
    merits: _Merits, methods: Sequence[Method], columns: Sequence[tuple[str, tuple[str, ...]]]
) -> dict[str, _BySeed]:
    """The means over a column's targets, by method, for the seeds that have a score at every target."""
    of_column: dict[str, _BySeed] = {}
    for column, targets in columns:
        means = {
            method.name: mean_by_seed([merits.get((method.name, target), {}) for target in targets])
            for method in methods
        }
        of_column[column] = {name: {seed: tied(mean) for seed, mean in of.items()} for name, of in means.items()}
    return of_column


def _regrets(best: _BySeed, merits: _BySeed) -> _BySeed:
    """What the best selection scores more, by method and seed."""
    return {
        name: {seed: best[name][seed] - score for seed, score in by_seed.items() if seed in best[name]}
        for name, by_seed in merits.items()
    }
