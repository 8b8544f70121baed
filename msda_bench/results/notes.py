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
    candidates, every = Candidates(runs), list[Note]()
    selection = results_of(runs).selection
    by = None if selection is None else selection.track
    for experiment, rows in experiments(select(runs) if selected is None else selected):
        name = experiment.name
        own = (line for line in experiment.notes if by is None or not line.startswith(SELECTED_BY))
        every += [Note("suite", name, line) for line in (*own, *_chosen(experiment, by))]
        every += [Note("candidates", name, line) for line in _unselected(experiment, candidates, by)]
        every += [Note(kind, name, line) for kind, line in _remarks(experiment, rows)]
    return every


def _chosen(experiment: Experiment, by: str | None) -> Iterator[str]:
    tuning = experiment.tuning
    if tuning is None:
        if by is not None and experiment.criteria:
            yield f"Settings are those that {by} selects."
        return
    track, seeds = by or tuning.tracks[0], spans(tuning.seeds)
    if track == FIRST:
        yield "Settings: candidate 0 of each method, without any selection."
        return
    searches = {method.name: method.search for method in experiment.methods if method.search is not None}
    most = max(len(search.candidates) for search in searches.values())
    on = f"chosen once for each method and target on tuning seeds {seeds}"
    yield f"Settings {on} by {_worded(track)}, among {most} candidates."
    for own in dict.fromkeys(searches[name].by for name in tuning.oracles if name in searches):
        names = ", ".join(name for name in tuning.oracles if name in searches and searches[name].by == own)
        if own != track:
            yield f"Trained with the target's labels, and so chosen by {_worded(own)}: {names}."


def _unselected(experiment: Experiment, candidates: Candidates, by: str | None) -> Iterator[str]:
    """How many candidates of each method could not be selected, by reason."""
    methods = candidates.methods(experiment)
    choices = {method.name: [*candidates.choices(experiment, method, by)] for method in methods}
    runs = len(experiment.targets) * (1 if experiment.tuning is not None else len(experiment.seeds))
    planned = {method.name: len(method.search.candidates) * runs for method in methods if method.search}
    for what, why in _UNSELECTED.items():
        counts = {name: sum(getattr(choice, what) for choice in of) for name, of in choices.items()}
        if some := [f"{name} {count} of {planned[name]}" for name, count in counts.items() if count]:
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
    where: dict[str, list[str]] = {line: [*lines] for line in more}
    for name, own in lines.items():
        for line in own:
            where.setdefault(line, []).append(name)
    every = len(results_of(runs).plan.experiments)
    for line, names in where.items():
        some = f"{first_of(names)}: " if 0 < len(names) < every else ""
        yield Line("note", f"{some}{line}")
    yield from (Line("problem", line) for line in problem_lines(runs))


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
    for experiment, own in experiments(select(runs)[["experiment", "method", "status", "target", "seed", "message"]]):
        planned = Counter(own["method"].astype(object))
        bad = own[(own["status"] != "ok").to_numpy()]
        for (method, status), group in _grouped(bad, "method", "status"):
            first, place = group.iloc[0], ([*planned].index(method), PROBLEMS.index(str(status)))
            message = None if pd.isna(first["message"]) else printable(first["message"], _MESSAGE)
            counts = len(group), planned[method], first["target"], first["seed"], message
            rows.append((experiment.name, *place, method, status, *counts))
    columns = ("experiment", "_", "__", "method", "status", "runs", "planned", "target", "seed", "message")
    rows.sort(key=lambda row: row[:3])
    return pd.DataFrame(rows, columns=columns, dtype=object).drop(columns=["_", "__"])


def problem_lines(runs: pd.DataFrame) -> Iterator[str]:
    """The problems as sentences; methods with equal problems share one."""
    rows = problems(runs)
    same = ["experiment", "status", "runs", "planned", "target", "seed", "message"]
    for _, group in rows.groupby(same, dropna=False, sort=False):
        first, each = group.iloc[0], " each" if len(group) > 1 else ""
        which = f"{', '.join(group['method'])}: {first['runs']} of {first['planned']} runs{each}"
        status = _WORDS.get(first["status"], first["status"])
        place = f"first at target {printable(first['target'])}, seed {first['seed']}"
        why = "" if pd.isna(first["message"]) else f": {first['message']}"
        yield f"{first['experiment']}: {which} {status}, {place}{why}"


def _remarks(experiment: Experiment, rows: pd.DataFrame) -> Iterator[tuple[NoteKind, str]]:
    yield from (("tests", line) for line in small_tests_notes(experiment.targets, small_tests(rows)))
    yield from (("answers", line) for line in (*doubted_answers(rows), *lone_answers(rows)))
    made, results = rows[rows["key"].notna()], results_of(rows)
    for keys, what in (
        (results.conflicting, "another result of the same run is stored with the one that counts"),
        (results.damaged, "a damaged record counts as missing; run the suite again to replace it"),
    ):
        if len(affected := made[made["key"].isin(keys)]):
            yield "store", f"{what}: {which_runs(affected, made)}"
    yield from (("scores", line) for line in _unscored(experiment, made))
    if len(plain := made[(made["device"] == "cpu") & (made["numba"] == "")]):
        what = "trained without numba, by plain loops, which are slower and round differently"
        yield "made", f"{what}: {which_runs(plain, made)}"
    for (what,), affected in _grouped(made, "put_back"):
        changed = f"a component changed {printable(what, _MESSAGE)}, which was restored after its run"
        yield "made", f"{changed}: {which_runs(affected, made)}"
    yield from (("made", line) for line in _versions(experiment, made))
    ok = made[(made["status"] == "ok") & (made["method"] != CHANCE_REFERENCE)]
    if far := _far(ok, "score"):
        yield "outliers", f"scores far from those of the method's other seeds: {far}"
    if _SOURCES in ok and (far := _far(ok.assign(sources=100 * ok[_SOURCES].astype(float)), "sources", least=10)):
        what = "accuracy on the sources' held-out examples far below that of the method's other seeds"
        yield "outliers", f"{what}, so the training may have failed: {far}"
    yield from (("steps", line) for line in _steps(rows))


def _far(ok: pd.DataFrame, column: str, least: float | None = None) -> str:
    """Names runs far from the median of their method and target, without labels of the target only those far below.

    Far is ten times the median distance, of the method or of all methods at the target, whichever is larger, so that
    nearly equal runs have no outliers. With `least` it is this distance, and five times the method's own.
    """
    values, place = ok[column].astype(float), [ok["method"].astype(object), ok["target"].astype(object)]
    medians, counts = (values.groupby(place).transform(what) for what in ("median", "count"))
    away = (values - medians).abs()
    usual = away.groupby(place).transform("median")
    if least is None:
        limit = 10 * usual.clip(lower=usual.groupby(place[1]).transform("median"))
    else:
        limit, away = (5 * usual).clip(lower=least), medians - values
    rows = ok[["method", "target", "seed", column]].assign(median=medians, away=away)[
        (counts >= _MIN_RUNS) & (away > limit)
    ]
    return first_of(
        f"{row['method']} at target {printable(row['target'])}, seed {row['seed']} "
        f"({row[column]:.4g}, median {row['median']:.4g})"
        for row in rows.sort_values("away", ascending=False, kind="stable").to_dict("records")
    )


def _unscored(experiment: Experiment, made: pd.DataFrame) -> Iterator[str]:
    without = made[(made["status"] == "ok") & made["score"].isna() & made["message"].isna()]
    if experiment.metric is not None and len(without):
        measure = experiment.measure
        yield f"without {measure.label}: {which_runs(without, made)}: {why_unmeasured(measure)}"
    for _, affected in _grouped(made[(made["status"] == "ok") & made["message"].notna()], "method"):
        why = printable(affected["message"].iloc[0], _MESSAGE)
        whose = "its metric" if why.startswith("metric ") else "a validator's score"
        yield f"without {whose}: {which_runs(affected, made)}: {why}{_AFTER_MENDING if _RAISED in why else ''}"


def environments(made: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """Groups runs by the system that made them, most runs first; skips runs whose record does not name it."""
    about = made[["platform", "torch", "device", "device_name"]].astype(object)
    rows = [*about.where(about.notna(), None).itertuples(index=False, name=None)]
    words = {row: made_on(dict(zip(about, row, strict=True))) for row in {*rows}}
    groups = made.groupby(np.array([words[row] for row in rows], dtype=object))
    return sorted(((str(on), own) for on, own in groups), key=lambda one: (-len(one[1]), one[0]))


def _versions(experiment: Experiment, made: pd.DataFrame) -> Iterator[str]:
    """Notes runs of more than one system, and distributions whose versions are not the plan's, or are mixed."""
    planned: dict[str, set[str]] = {}
    for distribution in (text for method in experiment.methods for text in method.distributions):
        name, _, version = distribution.rpartition(" ")
        planned.setdefault(name, set()).add(version)
    columns = sorted(str(column) for column in made if str(column).startswith(VERSION))
    by_name = {name.removeprefix(VERSION): [(str(v), own) for (v,), own in _grouped(made, name)] for name in columns}
    for name, groups in {"system": environments(made), **by_name}.items():
        known = planned.get(name, {value for value, _ in groups})
        strange = [(value, own) for value, own in groups if value not in known]
        if strange or len(groups) > 1:
            what = (
                f"another {name} than the plan's {' and '.join(sorted(known))}" if strange else f"more than one {name}"
            )
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
        by_steps.setdefault(f"{low}" if low == high else f"{low} to {high}", []).append(method)
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
    of, parts = Counter(made["method"].astype(object)), []
    for (method,), own in _grouped(affected, "method"):
        part = f"{len(own)} of {of[method]} runs, first at target {own['target'].iloc[0]}, seed {own['seed'].iloc[0]}"
        parts.append(f"{method}, {'all runs' if len(own) == of[method] else part}")
    return "; ".join(parts)
