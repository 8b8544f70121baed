"""Writes notes on how runs were made, and lines on their problems."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from msda_bench.errors import printable
from msda_bench.results.answered import doubted_answers, lone_answers
from msda_bench.results.frame import PROBLEMS, experiments
from msda_bench.results.load import VALIDATOR, VERSION
from msda_bench.results.metric import why_unmeasured
from msda_bench.results.model_selection import Candidates, select
from msda_bench.results.report import Line
from msda_bench.results.runs import results_of
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
_MIN_RUNS = 5
"""With fewer runs of a method at a target, no run is reported as an outlier."""
_UNSELECTED = {
    "unfinished": "incomplete candidates; their runs count as missing",
    "diverged": "candidates that diverged, which cannot be selected",
    "failed": "candidates that failed at a tuning seed, which cannot be selected",
    "unscored": "candidates without the score that selects, which cannot be selected",
}
_WORDS = {"timeout": "timed out", "oom": "out of memory"}


@dataclass(frozen=True)
class Note:
    """One sentence on the runs of an experiment."""

    kind: NoteKind
    experiment: str
    line: str


def notes(runs: pd.DataFrame, selected: pd.DataFrame | None = None) -> list[Note]:
    """The suite's own notes, then facts from the records, in an order independent of when they were made.

    `selected` are the runs with the selected settings, if known.
    """
    candidates = Candidates(runs)
    selection = results_of(runs).selection
    by = None if selection is None else selection.track
    every: list[Note] = []
    for experiment, rows in experiments(select(runs) if selected is None else selected):
        lines = [line for line in experiment.notes if by is None or not line.startswith(SELECTED_BY)]
        lines += _chosen(experiment, by)
        every += [Note("suite", experiment.name, line) for line in lines]
        every += [Note("candidates", experiment.name, line) for line in _unselected(experiment, candidates, by)]
        for kind, remarks in _remarks(experiment, rows):
            every += [Note(kind, experiment.name, line) for line in remarks]
    return every


def _chosen(experiment: Experiment, by: str | None) -> Iterator[str]:
    tuning = experiment.tuning
    if tuning is None:
        if by is not None and experiment.criteria:
            yield f"Settings are those that {by} selects."
        return
    track = by or tuning.tracks[0]
    if track == FIRST:
        yield "Settings: candidate 0 of each method, without any selection."
        return
    searches = {method.name: method.search for method in experiment.methods if method.search is not None}
    most = max(len(search.candidates) for search in searches.values())
    on = f"chosen once for each method and target on tuning seeds {spans(tuning.seeds)}"
    yield f"Settings {on} by {_worded(track)}, among {most} candidates."
    oracles: dict[str, list[str]] = {}
    for name in tuning.oracles:
        if name in searches:
            oracles.setdefault(searches[name].by, []).append(name)
    for own, names in oracles.items():
        if own != track:
            yield f"Trained with the target's labels, and so chosen by {_worded(own)}: {', '.join(names)}."


def _unselected(experiment: Experiment, candidates: Candidates, by: str | None) -> Iterator[str]:
    """How many candidates of each method could not be selected, by reason."""
    methods = candidates.methods(experiment)
    runs = len(experiment.targets)
    if experiment.tuning is None:
        runs *= len(experiment.seeds)
    planned = {method.name: len(method.search.candidates) * runs for method in methods if method.search}
    choices = {method.name: [*candidates.choices(experiment, method, by)] for method in methods}
    for what, why in _UNSELECTED.items():
        some = []
        for name, of_method in choices.items():
            count = sum(getattr(choice, what) for choice in of_method)
            if count:
                some.append(f"{name} {count} of {planned[name]}")
        if some:
            yield f"{why}: {', '.join(some)}"


def _worded(by: str) -> str:
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
    return bool((selected["status"] == "ok").all()) and not scorers_raised(selected)


def scorers_raised(selected: pd.DataFrame) -> bool:
    """Whether a metric or a validator raised an exception in a run that is ok."""
    said = selected["message"].where(selected["status"] == "ok").dropna()
    return bool(said.astype(str).str.contains(_RAISED, regex=False).any())


def folder_lines(runs: pd.DataFrame, more: Iterable[str] = (), noted: Iterable[Note] | None = None) -> Iterator[Line]:
    """The notes of all experiments, each once and after `more`, then their problems; `noted` are notes if known."""
    lines = note_lines(notes(runs) if noted is None else noted)
    where = {line: [*lines] for line in more}
    for name, own in lines.items():
        for line in own:
            where.setdefault(line, []).append(name)
    every = len(results_of(runs).plan.experiments)
    for line, names in where.items():
        some = f"{first_of(names)}: " if 0 < len(names) < every else ""
        yield Line("note", f"{some}{line}")
    for line in problem_lines(runs):
        yield Line("problem", line)


def note_lines(noted: Iterable[Note]) -> dict[str, list[str]]:
    """The sentences of notes by experiment."""
    lines: dict[str, list[str]] = {}
    for note in noted:
        lines.setdefault(note.experiment, []).append(note.line)
    return lines


def problems(runs: pd.DataFrame) -> pd.DataFrame:
    """Groups runs that are not ok by experiment, method and status, the worst status first.

    `target`, `seed` and `message` are those of the first run in table order; `planned` counts the method's runs.
    """
    rows = []
    chosen = select(runs)[["experiment", "method", "status", "target", "seed", "message"]]
    for experiment, own in experiments(chosen):
        planned = Counter(own["method"].astype(object))
        methods = [*planned]
        bad = own[(own["status"] != "ok").to_numpy()]
        for (method, status), group in _grouped(bad, "method", "status"):
            place = experiment.name, methods.index(method), PROBLEMS.index(str(status))
            first = group.iloc[0]
            message = None if pd.isna(first["message"]) else printable(first["message"], _MESSAGE)
            counts = len(group), planned[method]
            row = experiment.name, method, status, *counts, first["target"], first["seed"], message
            rows.append((place, row))
    rows.sort(key=lambda placed: placed[0])
    columns = ("experiment", "method", "status", "runs", "planned", "target", "seed", "message")
    return pd.DataFrame([row for _, row in rows], columns=columns, dtype=object)


def problem_lines(runs: pd.DataFrame) -> Iterator[str]:
    """The problems as sentences; methods with equal problems share one."""
    rows = problems(runs)
    same = ["experiment", "status", "runs", "planned", "target", "seed", "message"]
    for _, group in rows.groupby(same, dropna=False, sort=False):
        first = group.iloc[0]
        each = " each" if len(group) > 1 else ""
        which = f"{', '.join(group['method'])}: {first['runs']} of {first['planned']} runs{each}"
        status = _WORDS.get(first["status"], first["status"])
        place = f"first at target {printable(first['target'])}, seed {first['seed']}"
        why = "" if pd.isna(first["message"]) else f": {first['message']}"
        yield f"{first['experiment']}: {which} {status}, {place}{why}"


def _remarks(experiment: Experiment, rows: pd.DataFrame) -> Iterator[tuple[NoteKind, Iterable[str]]]:
    made = rows[rows["key"].notna()]
    yield "tests", small_tests_notes(experiment.targets, small_tests(rows))
    yield "answers", doubted_answers(rows)
    yield "answers", lone_answers(rows)
    yield "store", _faulty(made)
    yield "scores", _unscored(experiment, made)
    yield "made", _unusual(made)
    yield "made", _versions(experiment, made)
    yield "outliers", _outliers(made)
    yield "steps", _steps(rows)


def _faulty(made: pd.DataFrame) -> Iterator[str]:
    """Notes runs whose records are in conflict or damaged."""
    results = results_of(made)
    for keys, what in (
        (results.conflicting, "another result of the same run is stored with the one that counts"),
        (results.damaged, "a damaged record counts as missing; run the suite again to replace it"),
    ):
        affected = made[made["key"].isin(keys)]
        if len(affected):
            yield f"{what}: {which_runs(affected, made)}"


def _unusual(made: pd.DataFrame) -> Iterator[str]:
    """Notes runs without numba, and components that changed the state of the process."""
    plain = made[(made["device"] == "cpu") & (made["numba"] == "")]
    if len(plain):
        what = "trained without numba, by plain loops, which are slower and round differently"
        yield f"{what}: {which_runs(plain, made)}"
    for (what,), affected in _grouped(made, "put_back"):
        changed = f"a component changed {printable(what, _MESSAGE)}, which was restored after its run"
        yield f"{changed}: {which_runs(affected, made)}"


def _outliers(made: pd.DataFrame) -> Iterator[str]:
    ok = made[(made["status"] == "ok") & (made["method"] != CHANCE_REFERENCE)]
    far = _far(ok, "score")
    if far:
        yield f"scores far from those of the method's other seeds: {far}"
    if _SOURCES not in ok:
        return
    far = _far(ok.assign(sources=100 * ok[_SOURCES].astype(float)), "sources", least=10)
    if far:
        what = "accuracy on the sources' held-out examples far below that of the method's other seeds"
        yield f"{what}, so the training may have failed: {far}"


def _far(ok: pd.DataFrame, column: str, least: float | None = None) -> str:
    """Names runs whose value is far from the median of their method at their target.

    Far is ten times the median distance, of the method or of all methods at the target, whichever is larger, so that
    nearly equal runs have no outliers. With `least`, only runs below the median count, and far is this distance or five
    times the method's own median distance, whichever is larger.
    """
    values = ok[column].astype(float)
    target = ok["target"].astype(object)
    place = [ok["method"].astype(object), target]
    medians = values.groupby(place).transform("median")
    counts = values.groupby(place).transform("count")
    away = (values - medians).abs()
    usual = away.groupby(place).transform("median")
    if least is None:
        of_all = usual.groupby(target).transform("median")
        limit = 10 * usual.clip(lower=of_all)
    else:
        away = medians - values
        limit = (5 * usual).clip(lower=least)
    rows = ok[["method", "target", "seed", column]].assign(median=medians, away=away)
    far = rows[(counts >= _MIN_RUNS) & (away > limit)]
    lines = []
    for row in far.sort_values("away", ascending=False, kind="stable").to_dict("records"):
        run = f"{row['method']} at target {printable(row['target'])}, seed {row['seed']}"
        lines.append(f"{run} ({row[column]:.4g}, median {row['median']:.4g})")
    return first_of(lines)


def _unscored(experiment: Experiment, made: pd.DataFrame) -> Iterator[str]:
    ok = made[made["status"] == "ok"]
    without = ok[ok["score"].isna() & ok["message"].isna()]
    if experiment.metric is not None and len(without):
        measure = experiment.measure
        yield f"without {measure.label}: {which_runs(without, made)}: {why_unmeasured(measure)}"
    for _, affected in _grouped(ok[ok["message"].notna()], "method"):
        why = printable(affected["message"].iloc[0], _MESSAGE)
        whose = "its metric" if why.startswith("metric ") else "a validator's score"
        again = _AFTER_MENDING if _RAISED in why else ""
        yield f"without {whose}: {which_runs(affected, made)}: {why}{again}"


def environments(made: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """Groups runs by the system that made them, most runs first; skips runs whose record does not name it."""
    about = made[["platform", "torch", "device", "device_name"]].astype(object)
    rows = [*about.where(about.notna(), None).itertuples(index=False, name=None)]
    words = {row: made_on(dict(zip(about, row, strict=True))) for row in {*rows}}
    by_system = made.groupby(np.array([words[row] for row in rows], dtype=object))
    groups = [(str(system), own) for system, own in by_system]
    return sorted(groups, key=lambda group: (-len(group[1]), group[0]))


def _versions(experiment: Experiment, made: pd.DataFrame) -> Iterator[str]:
    """Notes runs of more than one system, and distributions whose versions are mixed or are not the plan's."""
    planned: dict[str, set[str]] = {}
    for distribution in (text for method in experiment.methods for text in method.distributions):
        name, _, version = distribution.rpartition(" ")
        planned.setdefault(name, set()).add(version)
    by_name = {"system": environments(made)}
    for column in sorted(str(column) for column in made if str(column).startswith(VERSION)):
        groups = [(str(version), own) for (version,), own in _grouped(made, column)]
        by_name[column.removeprefix(VERSION)] = groups
    for name, groups in by_name.items():
        strange = [(value, own) for value, own in groups if name in planned and value not in planned[name]]
        if strange:
            what = f"another {name} than the plan's {' and '.join(sorted(planned[name]))}"
        elif len(groups) > 1:
            what = f"more than one {name}"
        else:
            continue
        which = sorted(f"{printable(value)} ({which_runs(own, made)})" for value, own in strange or groups)
        yield f"made with {what}: {'; '.join(which)}"


def _steps(rows: pd.DataFrame) -> Iterator[str]:
    """Notes methods that took different numbers of training steps per run at a target."""
    # What is fitted at once has a note of its own, and a run that diverged stopped early.
    taken = rows[(rows["steps"] > 0) & (rows["status"] == "ok")]
    # Source sizes differ between targets, and with them the steps; only differences within a target count.
    if not (taken.groupby("target", observed=True)["steps"].nunique() > 1).any():
        return
    by_steps: dict[str, list[str]] = {}
    for (method,), own in _grouped(taken, "method"):
        low, high = own["steps"].min(), own["steps"].max()
        steps = f"{low}" if low == high else f"{low} to {high}"
        by_steps.setdefault(steps, []).append(method)
    text = "; ".join(f"{', '.join(methods)} {steps}" for steps, methods in by_steps.items())
    references = list(dict.fromkeys(taken.loc[taken["reference"].astype(bool), "method"].astype(object)))
    bound = f"; {' and '.join(references)} need not be an upper bound" if references else ""
    yield f"different numbers of training steps per run: {text}{bound}"


def _grouped(rows: pd.DataFrame, *columns: str) -> Iterator[tuple[tuple[Any, ...], pd.DataFrame]]:
    """Groups in the order of their first rows, without rows that have missing values."""
    return iter(rows.groupby(list(columns), observed=True, sort=False))


def which_runs(affected: pd.DataFrame, made: pd.DataFrame) -> str:
    """Names runs: `all runs`, or each method with `all runs`, or with their number and the first one."""
    if len(affected) == len(made):
        return "all runs"
    totals = Counter(made["method"].astype(object))
    parts = []
    for (method,), own in _grouped(affected, "method"):
        total = totals[method]
        first = own.iloc[0]
        some = f"{len(own)} of {total} runs, first at target {first['target']}, seed {first['seed']}"
        parts.append(f"{method}, {'all runs' if len(own) == total else some}")
    return "; ".join(parts)
