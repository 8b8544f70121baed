"""Writes notes on how runs were made, and lines on their problems."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from msda_bench.errors import printable
from msda_bench.results.frame import PROBLEMS, experiments
from msda_bench.results.metric import unmeasured, why_unmeasured
from msda_bench.results.recorded import VALIDATOR, VERSION
from msda_bench.results.report import Line
from msda_bench.results.select import TRACK, Candidates, select
from msda_bench.results.words import spans
from msda_bench.store.record import made_on
from msda_bench.suite.plan import FIRST, ORACLE, SELECTED_BY, TARGET_ACCURACY, Experiment, parts_of

Kind: TypeAlias = Literal[
    "suite",
    "candidates",
    "conflict",
    "damaged",
    "metric",
    "validator",
    "fallen",
    "slower",
    "process",
    "versions",
    "steps",
]
_MESSAGE = 200
"""The maximum length of a shown message."""
_RAISED = " raised "
_AFTER_MENDING = "; `run` makes these runs again once it is mended and its `version` raised"
_SOURCES = f"{VALIDATOR}source_accuracy"
_FALLEN = (
    "accuracy on the sources' held-out examples far below that of the other seeds, so the training may have failed"
)
_FALL, _SPREADS, _SIBLINGS = 0.1, 5, 3
"""A run is flagged if it is this far below the median of three siblings or more: 10 points, and 5 median deviations.

In results/paper-amazon this flags 2 of 480 runs, with 50 and 60 %; the others have 86 and 78 %.
"""
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

    kind: Kind
    experiment: str
    line: str


def notes(runs: pd.DataFrame) -> list[Note]:
    """The suite's own notes, then facts from the records, in an order independent of when they were made."""
    candidates = selection_notes(runs)
    every: list[Note] = []
    for experiment, rows in experiments(select(runs)):
        name = experiment.name
        by = runs.attrs.get(TRACK)
        own = (line for line in experiment.notes if by is None or not line.startswith(SELECTED_BY))
        every += [Note("suite", name, line) for line in (*own, *_chosen(experiment, by))]
        every += [note for note in candidates if note.experiment == name]
        every += [Note(kind, name, line) for kind, line in _remarks(experiment, rows)]
    return every


def _chosen(experiment: Experiment, by: str | None) -> Iterator[str]:
    """How settings were chosen on tuning seeds, or that another criterion was asked for."""
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


def _worded(by: str) -> str:
    if by == ORACLE:
        return "oracle, the score on the target's own test labels, which are not available in practice"
    if by == TARGET_ACCURACY:
        return f"{by}, the score on labelled training examples of the target that are held out"
    added = "the sum of their standardised scores, " if len(parts_of(by)) > 1 else ""
    return f"{by}, {added}without target labels"


def is_whole(runs: pd.DataFrame) -> bool:
    """Whether every run is ok, with all that was to be computed, and no record is damaged or in conflict."""
    return not runs.attrs["fault_lines"] and all_ok(select(runs))


def all_ok(selected: pd.DataFrame) -> bool:
    """Whether every run is ok, and no metric or validator raised."""
    return bool((selected["status"] == "ok").all()) and not scorers_raised(selected)


def scorers_raised(selected: pd.DataFrame) -> bool:
    """Whether a metric or a validator raised an exception in a run that is ok."""
    said = selected["message"].where(selected["status"] == "ok").dropna()
    return bool(said.astype(str).str.contains(_RAISED, regex=False).any())


def folder_lines(runs: pd.DataFrame, more: Iterable[str] = ()) -> Iterator[Line]:
    """The notes of all experiments, each once and after these, then their problems."""
    lines = [*more, *(line for lines in note_lines(runs).values() for line in lines)]
    yield from (Line("note", line) for line in dict.fromkeys(lines))
    yield from (Line("problem", line) for line in problem_lines(runs))


def selection_notes(runs: pd.DataFrame) -> list[Note]:
    """Notes on candidates that could not be selected, one for each experiment and reason."""
    candidates = Candidates(runs)
    reasons: dict[tuple[str, str], list[str]] = {}
    for table, method in candidates.methods():
        choices = [*candidates.choices(table, method, runs.attrs.get(TRACK))]
        times = 1 if table.tuning is not None else len(table.seeds)
        planned = len(method.search.candidates if method.search else ()) * len(table.targets) * times
        for what in _UNSELECTED:
            if count := sum(getattr(choice, what) for choice in choices):
                reasons.setdefault((table.name, what), []).append(f"{method.name} {count} of {planned}")
    order = [(table.name, what) for table in runs.attrs["plan"].experiments for what in _UNSELECTED]
    return [
        Note("candidates", place[0], f"{_UNSELECTED[place[1]]}: {', '.join(reasons[place])}")
        for place in order
        if place in reasons
    ]


def note_lines(runs: pd.DataFrame) -> dict[str, list[str]]:
    """The sentences of the notes by experiment, without the notes on steps, which only tables show."""
    return lines_of(notes(runs))


def lines_of(noted: Iterable[Note]) -> dict[str, list[str]]:
    """The lines that `note_lines` returns, of known notes."""
    lines: dict[str, list[str]] = {}
    for note in noted:
        if note.kind != "steps":
            lines.setdefault(note.experiment, []).append(note.line)
    return lines


def problems(runs: pd.DataFrame) -> pd.DataFrame:
    """Groups runs that are not ok by experiment, method and status, the worst status first.

    `target`, `seed` and `message` are those of the first run in table order; `planned` counts the method's runs.
    """
    rows = []
    for experiment, own in experiments(select(runs)):
        planned = Counter(own["method"].astype(object))
        bad = own[(own["status"] != "ok").to_numpy()]
        for (method, status), group in bad.groupby(["method", "status"], observed=True, sort=False):
            first = group.iloc[0]
            message = None if pd.isna(first["message"]) else printable(first["message"], _MESSAGE)
            row = {"experiment": experiment.name, "method": method, "status": status, "runs": len(group)}
            row |= {"planned": planned[method], "target": first["target"], "seed": first["seed"], "message": message}
            rows.append((list(planned).index(method), PROBLEMS.index(str(status)), row))
    rows.sort(key=lambda row: (row[2]["experiment"], *row[:2]))
    columns = ("experiment", "method", "status", "runs", "planned", "target", "seed", "message")
    frame = pd.DataFrame([row for *_, row in rows], columns=columns).astype({"message": object})
    return frame.assign(message=frame["message"].where(frame["message"].notna(), None))


def problem_lines(runs: pd.DataFrame) -> Iterator[str]:
    """The problems as sentences; methods with equal problems share one."""
    rows = problems(runs)
    same = ["experiment", "status", "runs", "planned", "target", "seed", "message"]
    for _, group in rows.groupby(same, dropna=False, sort=False):
        first, names = group.iloc[0], ", ".join(group["method"])
        status = _WORDS.get(first["status"], first["status"])
        each = " each" if len(group) > 1 else ""
        text = (
            f"{first['experiment']}: {names}: {first['runs']} of {first['planned']} runs{each} {status}, "
            f"first at target {printable(first['target'])}, seed {first['seed']}"
        )
        yield text if pd.isna(first["message"]) else f"{text}: {first['message']}"


def _remarks(experiment: Experiment, rows: pd.DataFrame) -> Iterator[tuple[Kind, str]]:
    made = rows[rows["key"].notna()]
    faults = rows.attrs["faults"]
    for kind, keys, what in (
        ("conflict", faults.conflicting, "another result of the same cell is stored with the one that counts"),
        ("damaged", faults.damaged, "a damaged record counts as missing; run the suite again to replace it"),
    ):
        if len(affected := made[made["key"].isin(keys)]):
            yield kind, f"{what}: {which_runs(affected, made)}"  # type: ignore[misc]
    yield from _unscored(experiment, made)
    for (size, why), affected in _grouped(made[made["stack_note"].notna()], "stack", "stack_note"):
        how = "alone" if size == 1 else f"in stacks of {size}"
        yield "slower", f"trained {how}, which is slower: {which_runs(affected, made)}: {printable(why, _MESSAGE)}"
    plain = made[(made["device"] == "cpu") & (made["numba"] == "")]
    if len(plain):
        where = which_runs(plain, made)
        yield "slower", f"trained without numba, by plain loops, which are slower and round differently: {where}"
    for (what,), affected in _grouped(made, "put_back"):
        changed = f"a component changed {printable(what, _MESSAGE)}, which was restored after its run"
        yield "process", f"{changed}: {which_runs(affected, made)}"
    for line in (*_environments(made), *_versions(experiment, made)):
        yield "versions", line
    yield from _fallen(made)
    yield from _steps(rows)


def _fallen(made: pd.DataFrame) -> Iterator[tuple[Kind, str]]:
    """Notes runs whose accuracy on the sources is far below that of the method's other seeds at the target."""
    if _SOURCES not in made:
        return
    scored = made[(made["status"] == "ok") & made[_SOURCES].notna()]
    lines = [line for names, own in _grouped(scored, "method", "target") for line in _far_below(own, *names)]
    if lines:
        yield "fallen", f"{_FALLEN}: {'; '.join(lines)}"


def _far_below(own: pd.DataFrame, method: str, target: str) -> Iterator[str]:
    scores = own[_SOURCES].to_numpy()
    if len(scores) <= _SIBLINGS:
        return
    middles, spreads = medians_of_others(scores), np.zeros(len(scores))
    for middle in np.unique(middles):  # at most three
        same = middles == middle
        spreads[same] = medians_of_others(np.abs(scores - middle))[same]
    for place in np.flatnonzero(middles - scores > np.maximum(_FALL, _SPREADS * spreads)):
        seen = f"{100 * scores[place]:.1f}; median of the others {100 * middles[place]:.1f}"
        yield f"{method} at target {printable(target)}, seed {own['seed'].iloc[place]} ({seen})"


def medians_of_others(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """For each of n >= 2 values, the median of the other n - 1; (n,)."""
    n, ordered = len(values), np.sort(values)
    ranks = np.empty(n, int)
    ranks[np.argsort(values, kind="stable")] = np.arange(n)
    low, high = (ordered[place + (ranks <= place)] for place in ((n - 2) // 2, (n - 1) // 2))
    middles: NDArray[np.float64] = (low + high) / 2
    return middles


def _unscored(experiment: Experiment, made: pd.DataFrame) -> Iterator[tuple[Kind, str]]:
    """Notes runs that are ok but have no value of the table's metric, or no score of a metric or validator."""
    without = unmeasured(experiment, made)
    if len(without := without[without["message"].isna().to_numpy()]):
        measure = experiment.measure
        yield "metric", f"without {measure.label}: {which_runs(without, made)}: {why_unmeasured(measure)}"
    unscored = made[(made["status"] == "ok") & made["message"].notna()]
    for _, affected in _grouped(unscored, "method"):
        why = printable(affected["message"].iloc[0], _MESSAGE)
        whose = "its metric" if why.startswith("metric ") else "a validator's score"
        remedy = _AFTER_MENDING if _RAISED in why else ""
        yield "validator", f"without {whose}: {which_runs(affected, made)}: {why}{remedy}"


def environments(made: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """Groups runs by the system that made them, most runs first; skips runs whose record does not name it."""
    about = made[["platform", "torch", "device", "device_name"]].astype(object)
    words = np.array([made_on(row) for row in about.where(about.notna(), None).to_dict("records")], dtype=object)
    return sorted(((str(on), own) for on, own in made.groupby(words)), key=lambda one: (-len(one[1]), one[0]))


def _environments(made: pd.DataFrame) -> Iterator[str]:
    """Notes the runs that were made on a different system than most."""
    (most, home), *others = environments(made) or [("", made)]
    n = len(home) + sum(len(own) for _, own in others)
    if others:
        away = [f"{len(own)} of {n} runs were made on {on} ({which_runs(own, made)})" for on, own in others]
        yield f"{'; '.join(away)}; {len(home)} on {most}"


def _versions(experiment: Experiment, made: pd.DataFrame) -> Iterator[str]:
    """Notes distributions whose versions are not the plan's, or are mixed."""
    planned: dict[str, set[str]] = {}
    for distribution in (text for method in experiment.methods for text in method.distributions):
        name, _, version = distribution.rpartition(" ")
        planned.setdefault(name, set()).add(version)
    columns = {name.removeprefix(VERSION): name for name in map(str, made) if name.startswith(VERSION)}
    for name, column in sorted(columns.items()):
        by_version = {str(version): own for (version,), own in _grouped(made, column)}
        lines = {
            version: f"{printable(version)} ({which_runs(by_version[version], made)})" for version in sorted(by_version)
        }
        strange = [line for version, line in lines.items() if version not in planned.get(name, by_version)]
        if strange:
            known = " and ".join(sorted(planned[name]))
            yield f"made with another {name} than the plan's {known}: {'; '.join(strange)}"
        elif len(by_version) > 1:
            yield f"made with more than one {name}: {'; '.join(lines.values())}"


def _steps(rows: pd.DataFrame) -> Iterator[tuple[Kind, str]]:
    """Notes methods that took different numbers of training steps per run at a target."""
    # What is fitted at once has a note of its own, and a run that diverged stopped early.
    taken = rows[(rows["steps"] > 0) & (rows["status"] == "ok")]
    by_method = {method: set(own["steps"]) for (method,), own in _grouped(taken, "method")}
    # Source sizes differ between targets, and with them the steps; only differences within a target count.
    unequal = any(own["steps"].nunique() > 1 for _, own in _grouped(taken, "target"))
    if not unequal:
        return
    by_steps: dict[str, list[str]] = {}
    for method, steps in by_method.items():
        low, high = min(steps), max(steps)
        by_steps.setdefault(f"{low}" if low == high else f"{low} to {high}", []).append(method)
    text = "; ".join(f"{', '.join(methods)} {steps}" for steps, methods in by_steps.items())
    references = list(dict.fromkeys(taken.loc[taken["reference"].astype(bool), "method"].astype(object)))
    bound = f"; {' and '.join(references)} need not be an upper bound" if references else ""
    yield "steps", f"different numbers of training steps per run: {text}{bound}"


def _grouped(rows: pd.DataFrame, *columns: str) -> Iterator[tuple[tuple[Any, ...], pd.DataFrame]]:
    """Groups in the order of their first rows, without rows that have missing values."""
    return iter(rows.groupby(list(columns), observed=True, sort=False))


def which_runs(affected: pd.DataFrame, made: pd.DataFrame) -> str:
    """Names runs: `all runs`, or each method with `all runs`, or with their number and the first one."""
    if len(affected) == len(made):
        return "all runs"
    of = Counter(made["method"].astype(object))
    parts = []
    for (method,), own in _grouped(affected, "method"):
        first = own.iloc[0]
        part = f"{len(own)} of {of[method]} runs, first at target {first['target']}, seed {first['seed']}"
        parts.append(f"{method}, {'all runs' if len(own) == of[method] else part}")
    return "; ".join(parts)
