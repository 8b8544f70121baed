"""Several result folders as one leaderboard."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from msda_bench.errors import BenchError
from msda_bench.report.folder import Folder
from msda_bench.report.remarks import annotated
from msda_bench.report.union_parts import Part, alike, method_of, other_definition, other_recipe, part_of
from msda_bench.report.union_records import Clash, Pool, pool
from msda_bench.report.words import spans
from msda_bench.store.record import Record
from msda_bench.suite.plan import Experiment, Method, Plan, PlannedCell


@dataclass(frozen=True)
class Union:
    """Several folders as one.

    Attributes:
        plan: all that they ask for together, with notes.
        records: of all, by key; where two results differ, the one of the first folder.
        conflicts: a line for each thing that is not the same in all; each is a note of its experiment, too.
    """

    plan: Plan
    records: Mapping[str, Record]
    conflicts: tuple[str, ...]


@dataclass(frozen=True)
class _Table:
    """An experiment of the union."""

    experiment: Experiment
    cells: tuple[PlannedCell, ...]
    conflicts: tuple[str, ...]


def unite(folders: Sequence[Folder]) -> Union:
    """Unites the experiments of the same name and definition: their methods, targets and seeds.

    What is not the same stays apart: an experiment of other data, network or protocol as `name @ folder`, and so a
    method of another recipe. Where a cell has two results, that of the first folder counts, as in `store merge`.

    Args:
        folders: two or more.

    Returns:
        The union, which depends on the order of the folders only where they are in conflict, and in the order of rows.

    Raises:
        BenchError: a folder is named twice, or selects settings among candidates.
    """
    _refuse_selecting(folders)
    labels = _labels([folder.path for folder in folders])
    pooled = pool(labels, folders)
    parts = [
        part_of(label, folder, table)
        for label, folder in zip(labels, folders, strict=True)
        for table in folder.plan.experiments
    ]
    tables = [
        table
        for name in dict.fromkeys(part.table.name for part in parts)
        for table in _tables(name, [part for part in parts if part.table.name == name], pooled)
    ]
    suite = " + ".join(dict.fromkeys(folder.plan.suite for folder in folders))
    plan = Plan(suite, tuple(table.experiment for table in tables), tuple(cell for one in tables for cell in one.cells))
    conflicts = dict.fromkeys(line for table in tables for line in table.conflicts)
    return Union(annotated(plan, pooled.records, pooled.faults), pooled.records, tuple(conflicts))


def _refuse_selecting(folders: Sequence[Folder]) -> None:
    """A run that is another candidate's in each folder would be taken for another method."""
    for folder in folders:
        if any(method.search for table in folder.plan.experiments for method in table.methods):
            raise BenchError(
                f"{folder.path}: selects settings among candidates, which cannot share a table with other folders; "
                "folders of one suite are joined by `msda-bench store merge`"
            )


def _labels(paths: Sequence[Path]) -> list[str]:
    """The folders' names, or their paths where two have the same name."""
    whole = [path.resolve() for path in paths]
    if twice := [str(path) for path, place in zip(paths, whole, strict=True) if whole.count(place) > 1]:
        raise BenchError(f"{twice[0]}: is named twice; name different result folders")
    names = [place.name for place in whole]
    return [name if names.count(name) == 1 else str(path) for name, path in zip(names, paths, strict=True)]


def _tables(name: str, parts: Sequence[Part], pooled: Pool) -> Iterator[_Table]:
    groups, apart = alike(parts, other_definition)
    lines = [
        f"conflict: {name}: not the same experiment in {one.first} and {one.second}, which stay apart: {one.why}"
        for one in apart
    ]
    for group in groups:
        yield _table(name if len(groups) == 1 else _at(name, group), group, pooled, lines)


def _table(name: str, parts: Sequence[Part], pooled: Pool, known: Sequence[str]) -> _Table:
    """One experiment of parts that are alike."""
    methods: list[Method] = []
    cells: list[PlannedCell] = []
    conflicts = [*known, *_levels(name, parts)]
    for method in dict.fromkeys(row.name for part in parts for row in part.table.methods):
        having = [part for part in parts if any(row.name == method for row in part.table.methods)]
        groups, apart = alike(having, other_recipe(method))
        conflicts += [
            f"conflict: {name}: {method} is not the same in {one.first} and {one.second}, and has a row for each: "
            f"{one.why}"
            for one in apart
        ]
        for group in groups:
            row = _row(method if len(groups) == 1 else _at(method, group), method, group)
            methods.append(row)
            found = _cells(name, row.name, method, group)
            cells += found
            conflicts += _clashes(found, pooled)
    return _Table(_experiment(name, parts, methods, conflicts), tuple(cells), tuple(conflicts))


def _experiment(name: str, parts: Sequence[Part], methods: Sequence[Method], conflicts: Sequence[str]) -> Experiment:
    tables = [part.table for part in parts]
    same_table = all(table.published == tables[0].published for table in tables)
    sources = (
        f"merged from {part.label}: {', '.join(row.name for row in part.table.methods)}; "
        f"seeds {spans(part.table.seeds)}"
        for part in parts
    )
    notes = dict.fromkeys(note for table in tables for note in table.notes)
    baselines = {table.baseline for table in tables} - {None}
    shared = baselines & {row.name for row in methods}
    return Experiment(
        name=name,
        dataset=tables[0].dataset,
        task=tables[0].task,
        targets=tuple(dict.fromkeys(target for table in tables for target in table.targets)),
        methods=tuple(methods),
        seeds=tuple(sorted({seed for table in tables for seed in table.seeds})),
        alpha=tables[0].alpha,
        notes=(*notes, *sources, *conflicts),
        published=tables[0].published if same_table else None,
        baseline=shared.pop() if len(baselines) == 1 and shared else None,
    )


def _row(name: str, method: str, parts: Sequence[Part]) -> Method:
    rows = [method_of(part, method) for part in parts]
    distributions = dict.fromkeys(origin for row in rows for origin in row.distributions)
    return Method(name, rows[0].reference, rows[0].recipe, tuple(distributions))


def _cells(experiment: str, row: str, method: str, parts: Sequence[Part]) -> list[PlannedCell]:
    """Each once: parts that are alike have the same key where they have the same cell."""
    found = {run[1:]: key for part in parts for run, key in part.keys.items() if run[0] == method}
    return [PlannedCell(experiment, row, *place, key) for place, key in found.items()]


def _levels(name: str, parts: Sequence[Part]) -> Iterator[str]:
    first = parts[0]
    for part in parts[1:]:
        if part.table.alpha != first.table.alpha:
            yield (
                f"conflict: {name}: alpha is {first.table.alpha:g} in {first.label} and {part.table.alpha:g} in "
                f"{part.label}; the former counts"
            )


def _clashes(cells: Sequence[PlannedCell], pooled: Pool) -> Iterator[str]:
    """A line for each pair of folders that have other results of a row's cells."""
    found: dict[tuple[str, str], list[tuple[PlannedCell, Clash]]] = {}
    for cell in cells:
        if clash := pooled.clashes.get(cell.key):
            found.setdefault((clash.first, clash.second), []).append((cell, clash))
    for (first, second), clashing in found.items():
        cell, clash = clashing[0]
        yield (
            f"conflict: {cell.experiment}: {cell.method}: {len(clashing)} of {len(cells)} cells have another result in "
            f"{second} than in {first}, which counts, first at target {cell.target}, seed {cell.seed}: {first} "
            f"{_result(clash.kept)}, {second} {_result(clash.other)}"
        )


def _result(record: Record) -> str:
    outcome = record.outcome
    if outcome is None:
        return record.status
    if outcome.n_correct is not None:
        return f"{outcome.n_correct}/{outcome.n_test} correct"
    return f"squared error {outcome.sum_squared_error:.6g} over {outcome.n_test}"


def _at(name: str, parts: Sequence[Part]) -> str:
    """A name that no suite gives: its own names have no `@`."""
    return f"{name} @ {' + '.join(part.label for part in parts)}"
