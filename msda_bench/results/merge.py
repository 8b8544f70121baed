"""Merges several result folders into one frame of runs; reports conflicts and keeps their sides separate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from msda_bench.errors import BenchError
from msda_bench.results.frame import COLUMNS, default_scores, experiments, typed
from msda_bench.results.merge_parts import Part, Pool, alike, other_definition, other_recipe, pool
from msda_bench.results.metric import measured
from msda_bench.results.words import spans
from msda_bench.suite.plan import Experiment, Method, Plan

_PLACE = COLUMNS[: COLUMNS.index("key")]
"""The columns that identify a run in the tables; the others come from its record."""
_GRID = ["method", "target", "seed"]


class _Merged(NamedTuple):
    """A merged experiment, its rows, and a line for each conflict."""

    experiment: Experiment
    runs: pd.DataFrame
    conflicts: list[str]


def merge(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Merges experiments with the same name and definition: their methods, targets and seeds.

    Differing parts stay separate: an experiment with different data, network or protocol becomes `name @ folder`, and
    so does a method with a different recipe. If a cell has two results, that of the first folder counts, as in
    `store merge`. A result replaces a failure in another folder.

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
    if len(frames) < 2:  # noqa: PLR2004 - one folder is merged with nothing
        raise BenchError("--merge needs two or more result folders")
    _refuse_selecting(frames)
    labels = _labels(frames)
    pooled = pool(labels, frames)
    parts = [
        Part(label, experiment, rows)
        for label, runs in zip(labels, frames, strict=True)
        for experiment, rows in experiments(runs)
    ]
    by_name: dict[str, list[Part]] = {}
    for part in parts:
        by_name.setdefault(part.experiment.name, []).append(part)
    merged = [one for name, mine in by_name.items() for one in _experiments(name, mine, pooled)]
    suite = " + ".join(dict.fromkeys(runs.attrs["plan"].suite for runs in frames))
    runs = pd.concat([one.runs for one in merged], ignore_index=True).assign(suite=suite)
    runs = runs.join(pooled.runs.drop(columns=[*_PLACE, "label"]), on="key")
    runs = typed(runs.assign(status=runs["status"].astype(object).fillna("missing")))
    runs["score"] = default_scores(runs)  # a record's own score may use another experiment's metric
    tables = tuple(one.experiment for one in merged)
    runs.attrs = {
        "plan": Plan(suite, tables, ()),
        "folder": None,
        "faults": pooled.faults,
        "fault_lines": tuple(line for frame in frames for line in frame.attrs["fault_lines"]),
        "conflicts": tuple(dict.fromkeys(line for one in merged for line in one.conflicts)),
    }
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
    return [name if names.count(name) == 1 else path for name, path in zip(names, paths, strict=True)]


def _experiments(name: str, parts: Sequence[Part], pooled: Pool) -> Iterator[_Merged]:
    """One merged experiment for each group of parts with the same definition."""
    groups, apart = alike(parts, other_definition)
    lines = [
        f"conflict: {name}: not the same experiment in {one} and {other}, which stay apart: {why}"
        for one, other, why in apart
    ]
    for group in groups:
        yield _merged(name if len(groups) == 1 else _at(name, group), group, pooled, lines)


def _merged(name: str, parts: Sequence[Part], pooled: Pool, known: Sequence[str]) -> _Merged:
    rows: dict[Method, pd.DataFrame] = {}
    conflicts = [*known, *_levels(name, parts)]
    for method in dict.fromkeys(method for part in parts for method in part.methods):
        groups, apart = alike([part for part in parts if method in part.methods], partial(other_recipe, method))
        conflicts += [
            f"conflict: {name}: {method} is not the same in {one} and {other}, and has a row for each: {why}"
            for one, other, why in apart
        ]
        for group in groups:
            row = method if len(groups) == 1 else _at(method, group)
            runs = pd.concat([part.rows(method) for part in group])[["target", "seed", "key"]]
            runs = runs.dropna(subset="key").drop_duplicates(["target", "seed"]).assign(method=row)
            known_as = [part.methods[method] for part in group]
            distributions = dict.fromkeys(text for one in known_as for text in one.distributions)
            rows[Method(row, known_as[0].reference, known_as[0].recipe, tuple(distributions))] = runs
            conflicts += _clashes(f"{name}: {row}", runs, pooled)
    experiment = _experiment(name, parts, tuple(rows), conflicts)
    return _Merged(experiment, _on_grid(experiment, pd.concat(rows.values())), conflicts)


def _at(name: str, parts: Sequence[Part]) -> str:
    """A name that no suite can use, since names in suites contain no `@`."""
    return f"{name} @ {' + '.join(part.label for part in parts)}"


def _levels(name: str, parts: Sequence[Part]) -> Iterator[str]:
    first = parts[0]
    for part in parts[1:]:
        if part.experiment.alpha != first.experiment.alpha:
            yield (
                f"conflict: {name}: alpha is {first.experiment.alpha:g} in {first.label} and "
                f"{part.experiment.alpha:g} in {part.label}; the former counts"
            )


def _clashes(row: str, runs: pd.DataFrame, pooled: Pool) -> Iterator[str]:
    """A line for each pair of folders whose results for a row's cells differ."""
    clashing = runs.merge(pooled.clashes, on="key")
    for (first, second), own in clashing.groupby(["first", "second"], sort=False):
        one = own.iloc[0]
        yield (
            f"conflict: {row}: {len(own)} of {len(runs)} cells have another result in {second} than in {first}, which "
            f"counts, first at target {one['target']}, seed {one['seed']}: {first} {one['kept']}, {second} "
            f"{one['other']}"
        )


def _experiment(name: str, parts: Sequence[Part], methods: tuple[Method, ...], conflicts: Sequence[str]) -> Experiment:
    tables = [part.experiment for part in parts]
    origins = (
        f"merged from {part.label}: {', '.join(part.methods)}; seeds {spans(part.experiment.seeds)}" for part in parts
    )
    notes = dict.fromkeys(note for table in tables for note in table.notes)
    baselines = {table.baseline for table in tables} - {None}
    shared = baselines & {method.name for method in methods}
    return Experiment(
        name=name,
        dataset=tables[0].dataset,
        task=tables[0].task,
        targets=tuple(dict.fromkeys(target for table in tables for target in table.targets)),
        methods=methods,
        seeds=tuple(sorted({seed for table in tables for seed in table.seeds})),
        alpha=tables[0].alpha,
        notes=(*notes, *origins, *conflicts),
        published=tables[0].published if all(table.published == tables[0].published for table in tables) else None,
        metric=tables[0].metric,
        corrupted=tables[0].corrupted,
        without=tables[0].without,
        baseline=shared.pop() if len(baselines) == 1 and shared else None,
    )


def _on_grid(experiment: Experiment, runs: pd.DataFrame) -> pd.DataFrame:
    """Puts the runs on the full grid of the merged experiment; runs that no folder has are missing."""
    methods = [method.name for method in experiment.methods]
    grid = pd.MultiIndex.from_product([methods, experiment.targets, experiment.seeds], names=_GRID)
    runs = runs.astype({"target": object}).set_index(_GRID).reindex(grid).reset_index()
    return runs.assign(
        experiment=experiment.name,
        dataset=experiment.dataset,
        task=experiment.task,
        reference=runs["method"].map({method.name: method.reference for method in experiment.methods}),
        key=runs["key"].astype(object).where(runs["key"].notna(), None),
    )
