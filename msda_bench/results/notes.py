"""Writes notes on how runs were made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from msda_bench.errors import printable
from msda_bench.results.doubtful_predictions import doubtful_predictions, single_class_predictions
from msda_bench.results.frame import own_rows
from msda_bench.results.load import VALIDATOR, VERSION
from msda_bench.results.metric import why_unmeasured
from msda_bench.results.model_selection import Candidates, candidates_of, select
from msda_bench.results.problems import problem_lines
from msda_bench.results.report import Line
from msda_bench.results.runs import are_ok, ok_runs, results_of
from msda_bench.results.scores import ScoreTable, score_tables
from msda_bench.results.small import small_tests, small_tests_notes
from msda_bench.results.words import first_of, spans
from msda_bench.store.check import made_on
from msda_bench.suite.plan import (
    CHANCE_REFERENCE,
    FIRST,
    ORACLE,
    SELECTED_BY,
    TARGET_ACCURACY,
    Experiment,
    parts_of,
)

NoteKind: TypeAlias = Literal["suite", "candidates", "tests", "answers", "store", "scores", "outliers", "made", "steps"]
_MESSAGE = 200
"""The maximum length of a shown message."""
_RAISED = " raised "
_AFTER_MENDING = "; `run` makes these runs again once it is mended and its `version` raised"
_SOURCES = f"{VALIDATOR}source_accuracy"
_COLUMNS = frozenset(
    {
        *("experiment", "task", "target", "method", "reference", "seed", "key", "status", "message", "score"),
        *("n_test", "n_correct", "steps", "device", "device_name", "numba", "put_back", "platform", "torch", "folder"),
        _SOURCES,
    }
)
"""All that notes are made from, but for versions: frames of runs are wide, and each part of them a copy."""
_MIN_RUNS = 5
"""With fewer runs of a method at a target, no run is reported as an outlier."""
_UNSELECTED = {
    "unfinished": "incomplete candidates; their runs count as missing",
    "diverged": "candidates that diverged, which cannot be selected",
    "failed": "candidates that failed at a tuning seed, which cannot be selected",
    "unscored": "candidates without the score that selects, which cannot be selected",
}


@dataclass(frozen=True)
class Note:
    """One sentence on the runs of an experiment."""

    kind: NoteKind
    experiment: str
    line: str


def notes(
    runs: pd.DataFrame, selected: pd.DataFrame | None = None, tables: Iterable[ScoreTable] | None = None
) -> list[Note]:
    """The suite's own notes, then facts from the records, in an order independent of when they were made.

    `selected` are the runs with the selected settings, and `tables` their scores, if known.
    """
    if selected is None:
        selected = select(runs)
    if tables is None:
        tables = score_tables(selected)
    candidates = candidates_of(runs, selected)
    selection = results_of(runs).selection
    by = None if selection is None else selection.track
    some = selected[[name for name in selected if name in _COLUMNS or str(name).startswith(VERSION)]]
    every = []
    for table in tables:
        experiment = table.experiment
        remarks: list[tuple[NoteKind, Iterable[str]]] = [
            ("suite", _of_suite(experiment, by)),
            ("candidates", _unselected(experiment, candidates, by)),
            *_remarks(table, own_rows(experiment, some)),
        ]
        for kind, lines in remarks:
            every += [Note(kind, experiment.name, line) for line in lines]
    return every


def _of_suite(experiment: Experiment, by: str | None) -> Iterator[str]:
    """The suite's own notes, and how settings are selected; `by` is a criterion that replaces the suite's."""
    for line in experiment.notes:
        if by is None or not line.startswith(SELECTED_BY):
            yield line
    yield from _chosen(experiment, by)


def _chosen(experiment: Experiment, by: str | None) -> Iterator[str]:
    tuning = experiment.tuning
    if tuning is None:
        if by is not None and experiment.criteria:
            yield f"Settings are those that {by} selects."
        return
    criterion = by or tuning.tracks[0]
    if criterion == FIRST:
        yield "Settings: candidate 0 of each method, without any selection."
        return
    searches = {method.name: method.search for method in experiment.methods if method.search is not None}
    most = max(len(search.candidates) for search in searches.values())
    where = f"once for each method and target on tuning seeds {spans(tuning.seeds)}"
    yield f"Settings chosen {where} by {_worded(criterion)}, among {most} candidates."
    oracles: dict[str, list[str]] = {}
    for name in tuning.oracles:
        if name in searches:
            oracles.setdefault(searches[name].by, []).append(name)
    for own, names in oracles.items():
        if own != criterion:
            yield f"Trained with the target's labels, and so chosen by {_worded(own)}: {', '.join(names)}."


def _unselected(experiment: Experiment, candidates: Candidates, by: str | None) -> Iterator[str]:
    """How many candidates of each method could not be selected, by reason."""
    methods = candidates.methods(experiment)
    runs = len(experiment.targets)
    if experiment.tuning is None:
        runs *= len(experiment.seeds)
    planned = {method.name: len(method.search.candidates) * runs for method in methods if method.search}
    choices = {method.name: list(candidates.choices(experiment, method, by)) for method in methods}
    for reason, sentence in _UNSELECTED.items():
        some = []
        for name, of_method in choices.items():
            count = sum(getattr(choice, reason) for choice in of_method)
            if count:
                some.append(f"{name} {count} of {planned[name]}")
        if some:
            yield f"{sentence}: {', '.join(some)}"


def _worded(by: str) -> str:
    """A criterion, with what it needs to know."""
    if by == ORACLE:
        return "oracle, the score on the target's own test labels, which are not available in practice"
    if by == TARGET_ACCURACY:
        return f"{by}, the score on labelled training examples of the target that are held out"
    added = "the sum of their standardised scores, " if len(parts_of(by)) > 1 else ""
    return f"{by}, {added}without target labels"


def is_whole(runs: pd.DataFrame) -> bool:
    """Whether every run is ok, with all that was to be computed, and no record is damaged or in conflict."""
    return not results_of(runs).fault_lines and all_ok(select(runs))


def all_ok(selected: pd.DataFrame) -> bool:
    """Whether every run is ok, and no metric or validator raised."""
    return bool(are_ok(selected).all()) and not scorers_raised(selected)


def scorers_raised(selected: pd.DataFrame) -> bool:
    """Whether a metric or a validator raised an exception in a run that is ok."""
    messages = ok_runs(selected)["message"].dropna()
    return bool(messages.astype(str).str.contains(_RAISED, regex=False).any())


def folder_lines(runs: pd.DataFrame, more: Iterable[str] = (), noted: Iterable[Note] | None = None) -> Iterator[Line]:
    """The notes of all experiments, each once and after `more`, then their problems; `noted` are notes if known."""
    every = list(notes(runs) if noted is None else noted)
    with_notes = dict.fromkeys(note.experiment for note in every)
    where = {line: list(with_notes) for line in more}
    for note in every:
        where.setdefault(note.line, []).append(note.experiment)
    planned = len(results_of(runs).plan.experiments)
    for line, names in where.items():
        is_of_some = 0 < len(names) < planned
        yield Line("note", f"{first_of(names)}: {line}" if is_of_some else line)
    for line in problem_lines(runs):
        yield Line("problem", line)


def note_lines(noted: Iterable[Note]) -> dict[str, list[str]]:
    """The sentences of notes by experiment."""
    lines: dict[str, list[str]] = {}
    for note in noted:
        lines.setdefault(note.experiment, []).append(note.line)
    return lines


def _remarks(table: ScoreTable, rows: pd.DataFrame) -> Iterator[tuple[NoteKind, Iterable[str]]]:
    """The notes that the records give rise to, by kind."""
    experiment = table.experiment
    recorded = rows[rows["key"].notna()]
    yield "tests", small_tests_notes(experiment.targets, small_tests(rows))
    yield "answers", doubtful_predictions(rows)
    yield "answers", single_class_predictions(rows)
    yield "store", _faulty(recorded)
    yield "scores", _unscored(experiment, recorded)
    yield "made", _unusual(recorded)
    yield "made", _versions(experiment, recorded)
    yield "outliers", _outliers(table, recorded)
    yield "steps", _steps(rows)


def _faulty(recorded: pd.DataFrame) -> Iterator[str]:
    """Notes runs whose records are in conflict or damaged."""
    results = results_of(recorded)
    conflicting = recorded[recorded["key"].isin(results.conflicting)]
    if len(conflicting):
        what = "another result of the same run is stored with the one that counts"
        yield f"{what}: {which_runs(conflicting, recorded)}"
    damaged = recorded[recorded["key"].isin(results.damaged)]
    if len(damaged):
        what = "a damaged record counts as missing; run the suite again to replace it"
        yield f"{what}: {which_runs(damaged, recorded)}"


def _unusual(recorded: pd.DataFrame) -> Iterator[str]:
    """Notes runs without numba, and components that changed the state of the process."""
    plain = recorded[(recorded["device"] == "cpu") & (recorded["numba"] == "")]
    if len(plain):
        what = "trained without numba, by plain loops, which are slower and round differently"
        yield f"{what}: {which_runs(plain, recorded)}"
    for (what,), affected in _grouped(recorded[recorded["put_back"].notna()], "put_back"):
        changed = f"a component changed {printable(what, _MESSAGE)}, which was restored after its run"
        yield f"{changed}: {which_runs(affected, recorded)}"


def _outliers(table: ScoreTable, recorded: pd.DataFrame) -> Iterator[str]:
    """Notes runs whose scores are far from those of the method's other seeds."""
    far = _far(table, table.sign * table.merits[:, :-1])
    if far:
        yield f"scores far from those of the method's other seeds: {far}"
    if _SOURCES not in recorded:
        return
    far = _far(table, 100 * table.placed(recorded, _SOURCES), least=10)
    if far:
        what = "accuracy on the sources' held-out examples far below that of the method's other seeds"
        yield f"{what}, so the training may have failed: {far}"


def _far(table: ScoreTable, placed: NDArray[np.float64], least: float | None = None) -> str:
    """Names runs that are ok whose value is far from the median of their method at their target.

    Far is ten times the median distance, of the method or of all methods at the target, whichever is larger, so that
    nearly equal runs have no outliers. With `least`, only runs below the median count, and far is this distance or five
    times the method's own median distance, whichever is larger.

    Args:
        table: the scores of the experiment.
        placed: (methods, targets, seeds) the value of each run.
        least: see above.
    """
    is_judged = table.is_ok.copy()
    if CHANCE_REFERENCE in table.methods:
        is_judged[table.methods.index(CHANCE_REFERENCE)] = False
    values = np.where(is_judged, placed, np.nan)
    counts = (~np.isnan(values)).sum(axis=2, keepdims=True)
    medians = _medians(values)
    usual = _medians(np.abs(values - medians))
    if least is None:
        away = np.abs(values - medians)
        of_runs = np.where(is_judged, usual, np.nan).swapaxes(0, 1).reshape(1, len(table.targets), -1)
        limit = 10 * np.fmax(usual, _medians(of_runs))
    else:
        away = medians - values
        limit = np.fmax(5 * usual, least)
    is_far = (counts >= _MIN_RUNS) & (away > limit)
    places = sorted(np.argwhere(is_far).tolist(), key=lambda place: -away[tuple(place)])
    lines = []
    for method, target, seed in places:
        run = f"{table.methods[method]} at target {printable(table.targets[target])}, seed {table.seeds[seed]}"
        lines.append(f"{run} ({values[method, target, seed]:.4g}, median {medians[method, target, 0]:.4g})")
    return first_of(lines)


def _medians(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The medians over the last axis of what is not NaN, (..., 1); NaN where all is."""
    rows = pd.DataFrame(values.reshape(-1, values.shape[-1]))
    return rows.median(axis=1).to_numpy().reshape(*values.shape[:-1], 1)


def _unscored(experiment: Experiment, recorded: pd.DataFrame) -> Iterator[str]:
    """Notes runs that are ok without a score of the experiment's metric, or of a validator."""
    ok = ok_runs(recorded)
    without = ok[ok["score"].isna() & ok["message"].isna()]
    if experiment.metric is not None and len(without):
        measure = experiment.measure
        yield f"without {measure.label}: {which_runs(without, recorded)}: {why_unmeasured(measure)}"
    for _, affected in _grouped(ok[ok["message"].notna()], "method"):
        why = printable(affected["message"].iloc[0], _MESSAGE)
        whose = "its metric" if why.startswith("metric ") else "a validator's score"
        line = f"without {whose}: {which_runs(affected, recorded)}: {why}"
        if _RAISED in why:
            line += _AFTER_MENDING
        yield line


def environments(recorded: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """Groups runs by the system that made them, most runs first; skips runs whose record does not name it."""
    about = recorded[["platform", "torch", "device", "device_name"]].astype(object)
    rows = list(about.where(about.notna(), None).itertuples(index=False, name=None))
    words = {row: made_on(dict(zip(about, row, strict=True))) for row in set(rows)}
    systems = np.array([words[row] for row in rows], dtype=object)
    groups = []
    for system in sorted({str(word) for word in words.values() if word is not None}):
        groups.append((system, recorded[systems == system]))
    return sorted(groups, key=lambda group: -len(group[1]))


def _versions(experiment: Experiment, recorded: pd.DataFrame) -> Iterator[str]:
    """Notes runs of more than one system, and distributions whose versions are mixed or are not the plan's."""
    planned = _planned_versions(experiment)
    by_name = {"system": environments(recorded)}
    for column in sorted(map(str, recorded)):
        if column.startswith(VERSION):
            name = column.removeprefix(VERSION)
            made = recorded[column].dropna().unique().tolist()
            if len(made) > 1 or not planned.get(name, set()).issuperset(made):
                by_name[name] = [(str(version), own) for (version,), own in _grouped(recorded, column)]
    for name, groups in by_name.items():
        strange = []
        if name in planned:
            strange = [(version, own) for version, own in groups if version not in planned[name]]
        if strange:
            versions = " and ".join(sorted(planned[name]))
            yield f"made with another {name} than the plan's {versions}: {_with_runs(strange, recorded)}"
        elif len(groups) > 1:
            yield f"made with more than one {name}: {_with_runs(groups, recorded)}"


def _planned_versions(experiment: Experiment) -> dict[str, set[str]]:
    """The versions of each distribution that the plan's methods are from."""
    planned: dict[str, set[str]] = {}
    for method in experiment.methods:
        for distribution in method.distributions:
            name, _, version = distribution.rpartition(" ")
            planned.setdefault(name, set()).add(version)
    return planned


def _with_runs(groups: Iterable[tuple[str, pd.DataFrame]], recorded: pd.DataFrame) -> str:
    """Versions or systems, each with its runs."""
    return "; ".join(sorted(f"{printable(value)} ({which_runs(own, recorded)})" for value, own in groups))


def _steps(rows: pd.DataFrame) -> Iterator[str]:
    """Notes methods that took different numbers of training steps per run at a target."""
    # A method that is fitted at once has a note of its own, and a run that diverged stopped early.
    ok = ok_runs(rows)
    taken = ok[(ok["steps"] > 0).to_numpy(dtype=bool, na_value=False)]
    # Source sizes differ between targets, and with them the steps; only differences within a target count.
    numbers = taken.groupby("target", observed=True)["steps"].nunique()
    if not (numbers > 1).any():
        return
    by_steps: dict[str, list[str]] = {}
    for (method,), own in _grouped(taken, "method"):
        low = own["steps"].min()
        high = own["steps"].max()
        steps = f"{low}" if low == high else f"{low} to {high}"
        by_steps.setdefault(steps, []).append(method)
    parts = [f"{', '.join(methods)} {steps}" for steps, methods in by_steps.items()]
    references = taken.loc[taken["reference"].astype(bool), "method"].astype(object).unique()
    if len(references):
        parts.append(f"{' and '.join(references)} need not be an upper bound")
    yield f"different numbers of training steps per run: {'; '.join(parts)}"


def _grouped(rows: pd.DataFrame, *columns: str) -> Iterator[tuple[tuple[Any, ...], pd.DataFrame]]:
    """Groups in the order of their first rows, without rows that have missing values."""
    return iter(rows.groupby(list(columns), observed=True, sort=False))


def which_runs(affected: pd.DataFrame, recorded: pd.DataFrame) -> str:
    """Names runs: `all runs`, or each method with `all runs`, or with their number and the first one."""
    if len(affected) == len(recorded):
        return "all runs"
    totals = Counter(recorded["method"].astype(object))
    parts = []
    for (method,), own in _grouped(affected, "method"):
        if len(own) == totals[method]:
            parts.append(f"{method}, all runs")
            continue
        first = own.iloc[0]
        place = f"first at target {first['target']}, seed {first['seed']}"
        parts.append(f"{method}, {len(own)} of {totals[method]} runs, {place}")
    return "; ".join(parts)
