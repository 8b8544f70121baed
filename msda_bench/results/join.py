"""Joins the frames of several result folders into one, in which equal experiments and equal methods are one."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd

from msda_bench.errors import BenchError, printable
from msda_bench.results.frame import COLUMNS, experiments, runs_frame
from msda_bench.results.metric import measured
from msda_bench.results.recorded import Recorded, load_cells
from msda_bench.results.run_differences import equal_results
from msda_bench.results.words import listed, spans
from msda_bench.store.files import Faults
from msda_bench.store.record import RESULTS
from msda_bench.suite.cell import canonical_json
from msda_bench.suite.plan import Experiment, Method, Plan, PlannedCell
from msda_bench.suite.protocol import UpdateRule

_OF_PLAN = [*COLUMNS[: COLUMNS.index("key") + 1], "label"]
"""The columns that say where a run stands; the others come from its record."""
_SHARED = ("engine", "dataset", "fingerprint", "backbone", "training", "validators")
"""The parts of a cell that define its experiment, but for what a method may replace of its training."""
_OWN = {*UpdateRule.model_fields} | {f"{name}_params" for name in UpdateRule.model_fields}
_PLACE = ("target", "sources", "seed")

_Facts: TypeAlias = Mapping[Any, Any]
"""What a folder shows of an experiment or a method; two folders show the same unless they contradict each other."""


_Clashes: TypeAlias = Mapping[str, tuple[str, str]]
"""The folder whose result counts and the first with another result, by cell."""


def join(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Joins experiments of one name and definition: their methods, targets and seeds.

    Methods of one name are one if their cells are. What is not the same stays apart, as `name @ folder`. If a cell has
    two results, that of the first folder counts, as in `store merge`. A result replaces a failure.

    Args:
        frames: two or more frames from `load_results`.

    Returns:
        One frame of runs, with the folder of each in the column `folder`. The notes of the plan's experiments report
        the origin of each part and each conflict; `attrs["conflicts"]` holds the conflicts. The order of the frames
        affects only conflicts and the order of rows.

    Raises:
        BenchError: there are fewer than two frames, a folder is named twice, or a suite selects settings.
        StoreError: a record cannot be read.
    """
    if len(frames) < 2:  # noqa: PLR2004 - one folder is joined with nothing
        raise BenchError("--merge needs two or more result folders")
    _refuse_selecting(frames)
    labels = _labels(frames)
    recorded, clashes = _recorded(labels, frames)
    by_name: dict[str, list[_Part]] = {}
    for label, frame in zip(labels, frames, strict=True):
        for experiment, rows in experiments(frame):
            by_name.setdefault(experiment.name, []).append(_Part(label, experiment, rows))
    tables: list[Experiment] = []
    cells: list[PlannedCell] = []
    conflicts: dict[str, None] = {}
    for name, parts in by_name.items():
        groups = _told_apart(name, parts, {part.label: part.definition for part in parts})
        apart = _apart(name, groups)
        for row, group in groups.items():
            table, of_table, lines = _joined(row, group, apart, clashes)
            tables.append(table)
            cells += of_table
            conflicts |= dict.fromkeys(lines)
    suite = " + ".join(dict.fromkeys(frame.attrs["plan"].suite for frame in frames))
    runs = runs_frame(Plan(suite, tuple(tables), tuple(cells)), recorded)
    runs.attrs["conflicts"] = tuple(conflicts)
    return measured(runs, {table.name: (table.metric,) for table in tables if table.metric is not None})


def _refuse_selecting(frames: Sequence[pd.DataFrame]) -> None:
    """Refuses runs with candidates, since each folder's would look like another method."""
    for runs in frames:
        if any(method.search for table in runs.attrs["plan"].experiments for method in table.methods):
            raise BenchError(
                f"{runs.attrs['folder']}: selects settings among candidates, which cannot share a table with other "
                "folders; folders of one suite are joined by `msda-bench store merge`"
            )


def _labels(frames: Sequence[pd.DataFrame]) -> list[str]:
    """The folders' names, or their paths where names are equal."""
    paths = [runs.attrs["folder"] or f"frame {number}" for number, runs in enumerate(frames, 1)]
    whole = [Path(path).resolve() for path in paths]
    if twice := [path for path, place in zip(paths, whole, strict=True) if whole.count(place) > 1]:
        raise BenchError(f"{twice[0]}: is named twice; name different result folders")
    names = [place.name for place in whole]
    labels = [name if names.count(name) == 1 else path for name, path in zip(names, paths, strict=True)]
    return [printable(label) for label in labels]


def _folder_of(runs: pd.DataFrame) -> pd.Series[Any]:
    """The folder of each run, as an object: a path may have bytes that are no text."""
    return pd.Series(runs.attrs["folder"], runs.index, dtype=object)


def _recorded(labels: Sequence[str], frames: Sequence[pd.DataFrame]) -> tuple[Recorded, _Clashes]:
    """The records of all folders, the first folder's result of each cell, and the results that differ from these."""
    labelled = [
        (runs if "folder" in runs else runs.assign(folder=_folder_of(runs))).assign(label=label)
        for label, runs in zip(labels, frames, strict=True)
    ]
    rows = pd.concat([runs[runs["status"] != "missing"] for runs in labelled]).drop_duplicates(["key", "label"])
    rows = rows.set_index("key", drop=False).rename_axis(None)
    is_result = rows["status"].isin(RESULTS)
    kept = pd.concat([rows[is_result], rows[~is_result]]).drop_duplicates("key")
    clashes: dict[str, tuple[str, str]] = {}
    for label in labels[1:]:
        theirs = rows[is_result & (rows["label"] == label) & (kept["label"].reindex(rows.index) != label)]
        ours = kept.loc[theirs.index]
        equal = equal_results(ours, theirs)
        other = {key: first for key, first in zip(ours.index, ours["label"], strict=True) if key not in equal}
        clashes = {key: (first, label) for key, first in other.items()} | clashes
    faults = [runs.attrs["faults"] for runs in frames]
    damaged = frozenset(key for fault in faults for key in fault.damaged) - frozenset(rows.index[is_result])
    conflicting = frozenset(key for fault in faults for key in fault.conflicting)
    lines = tuple(line for runs in frames for line in runs.attrs["fault_lines"])
    return Recorded(kept.drop(columns=_OF_PLAN), Faults(damaged, conflicting), lines), clashes


@dataclass(frozen=True)
class _Part:
    """An experiment of one folder, with the folder's label and the experiment's rows."""

    label: str
    experiment: Experiment
    runs: pd.DataFrame

    @cached_property
    def methods(self) -> Mapping[str, Method]:
        return {method.name: method for method in self.experiment.methods}

    @cached_property
    def keys(self) -> dict[str, dict[tuple[str, int], str]]:
        """The keys of each method's cells by target and seed."""
        keys: dict[str, dict[tuple[str, int], str]] = {name: {} for name in self.methods}
        planned = self.runs.dropna(subset="key")[["method", "target", "seed", "key"]]
        for method, target, seed, key in planned.itertuples(index=False):
            keys[method][target, seed] = key
        return keys

    @cached_property
    def _cells(self) -> dict[str, dict[str, Any]]:
        """The cells of each method's first record, and of each target's, by key."""
        recorded = self.runs[(self.runs["status"] != "missing").to_numpy()]
        return load_cells(recorded[~recorded.duplicated("method") | ~recorded.duplicated("target")])

    @cached_property
    def definition(self) -> _Facts:
        """Everything but methods, targets and seeds."""
        table = self.experiment
        facts: dict[Any, Any] = {"dataset": table.dataset, "task": table.task, "metric": table.measure}
        rules: list[dict[str, Any]] = []
        for cell in self._cells.values():
            training = dict(cell.get("training") or {})
            rules.append({name: training.pop(name, None) for name in _OWN})
            facts.setdefault("shared", {name: cell.get(name) for name in _SHARED} | {"training": training})
            facts["sources", str(cell.get("target"))] = cell.get("sources")
        for name in _OWN - {"optimizer", "optimizer_params"}:
            # What methods disagree on is some method's own, and no more the experiment's than an optimizer is.
            if rules and all(rule[name] == rules[0][name] for rule in rules):
                facts["training", name] = rules[0][name]
        return facts

    def recipe(self, method: str) -> _Facts:
        """Everything but target and seed that defines a method, and the keys of its cells."""
        keys = self.keys[method]
        first = next((cell for key, cell in self._cells.items() if key in keys.values()), {})
        same = {name: value for name, value in first.items() if name not in _PLACE}
        facts: dict[Any, Any] = {"reference": self.methods[method].reference}
        return facts | keys | ({"cell": canonical_json(same)} if first else {})


def _told_apart(name: str, parts: Sequence[_Part], facts: Mapping[str, _Facts]) -> dict[str, list[_Part]]:
    """Groups the parts whose facts (by label) are the same, by name; several groups are named `name @ folder`."""
    groups: list[tuple[dict[Any, Any], list[_Part]]] = []
    for part in parts:
        own = facts[part.label]
        for known, group in groups:
            if all(known.get(what, fact) == fact for what, fact in own.items()):
                known.update(own)
                group.append(part)
                break
        else:
            groups.append((dict(own), [part]))
    if len(groups) == 1:
        return {name: groups[0][1]}
    return {f"{name} @ {' + '.join(part.label for part in group)}": group for _, group in groups}  # no suite uses an @


def _apart(what: str, groups: Collection[str]) -> list[str]:
    """A line if there is more than one group."""
    line = f"conflict: {what} differs between folders, and is shown as {listed(groups)}; `compare` says why"
    return [line] if len(groups) > 1 else []


def _joined(
    name: str, parts: Sequence[_Part], apart: Sequence[str], clashes: _Clashes
) -> tuple[Experiment, list[PlannedCell], list[str]]:
    """A joined experiment, its cells, and a line for each conflict."""
    levels = {part.label: part.experiment.alpha for part in parts}
    (first, alpha), *others = levels.items()
    lines = [
        *apart,
        *(
            f"conflict: {name}: alpha is {alpha:g} in {first} and {other:g} in {label}; the former counts"
            for label, other in others
            if other != alpha
        ),
    ]
    methods: list[Method] = []
    cells: list[PlannedCell] = []
    for method in dict.fromkeys(method for part in parts for method in part.methods):
        having = [part for part in parts if method in part.methods]
        groups = _told_apart(method, having, {part.label: part.recipe(method) for part in having})
        lines += _apart(f"{name}: {method}", groups)
        for row, group in groups.items():
            recipes = [part.methods[method] for part in group]
            distributions = dict.fromkeys(text for recipe in recipes for text in recipe.distributions)
            methods.append(replace(recipes[0], name=row, distributions=tuple(distributions)))
            keys = {place: key for part in reversed(group) for place, key in part.keys[method].items()}
            cells += [PlannedCell(name, row, *place, key) for place, key in keys.items()]
            lines += _other_results(f"{name}: {row}", keys, clashes)
    return _experiment(name, parts, tuple(methods), lines), cells, lines


def _other_results(row: str, keys: Mapping[tuple[str, int], str], clashes: _Clashes) -> Iterator[str]:
    """A line for each pair of folders whose results for a row's cells differ."""
    pairs = [clashes[key] for key in keys.values() if key in clashes]
    for first, second in dict.fromkeys(pairs):
        target, seed = next(place for place, key in keys.items() if clashes.get(key) == (first, second))
        yield (
            f"conflict: {row}: {pairs.count((first, second))} of {len(keys)} cells have another result in {second} "
            f"than in {first}, which counts, first at target {target}, seed {seed}"
        )


def _experiment(name: str, parts: Sequence[_Part], methods: tuple[Method, ...], conflicts: Sequence[str]) -> Experiment:
    tables = [part.experiment for part in parts]
    origins = (
        f"merged from {part.label}: {', '.join(part.methods)}; seeds {spans(part.experiment.seeds)}" for part in parts
    )
    notes = dict.fromkeys(note for table in tables for note in table.notes)
    names = {method.name for method in methods}
    margins = {table.margin for table in tables} - {None}
    primary = {table.primary for table in tables} - {()}

    def shared(named: Iterator[str | None]) -> str | None:
        """The one method that folders name, if they all mean the same."""
        meant = {*named} - {None}
        return meant.pop() if len(meant) == 1 and meant <= names else None

    return replace(
        tables[0],
        name=name,
        targets=tuple(dict.fromkeys(target for table in tables for target in table.targets)),
        methods=methods,
        seeds=tuple(sorted({seed for table in tables for seed in table.seeds})),
        notes=(*notes, *origins, *conflicts),
        published=tables[0].published if all(table.published == tables[0].published for table in tables) else None,
        baseline=shared(table.baseline for table in tables),
        against=shared(table.against for table in tables),
        margin=margins.pop() if len(margins) == 1 else None,
        primary=tuple(name for name in primary.pop() if name in names) if len(primary) == 1 else (),
    )
