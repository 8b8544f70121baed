"""Checks every file of a result folder, and removes files that dead processes left."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from msda_bench.atomic import is_abandoned, is_temporary, named
from msda_bench.errors import StoreError
from msda_bench.store.arrays import key_of_arrays, read_bytes
from msda_bench.store.codec import load_or_report
from msda_bench.store.names import RecordFile
from msda_bench.store.record import Record, made_on
from msda_bench.store.store import CELLS, Store
from msda_bench.suite.cell import canonical_json
from msda_bench.suite.plan import Experiment, PlannedCell

_Places = Sequence[tuple[PlannedCell, Experiment]]


@dataclass
class Verified:
    """The contents of a result folder: intact records and failures, files in quarantine, leftovers removed now.

    `conflicts` has a line for each result that differs from the one that counts; `bad` has one for each file that is
    damaged, of a newer msda-bench, in another place of plan.json than its cell is of, or does not belong there.
    `unplanned` has one for each record that plan.json does not name, as after a change of the suite. `made_on` counts
    the whole records by what they say they were made on.
    """

    records: int = 0
    failures: int = 0
    quarantined: int = 0
    removed: int = 0
    conflicts: list[str] = field(default_factory=list)
    bad: list[str] = field(default_factory=list)
    unplanned: list[str] = field(default_factory=list)
    made_on: Counter[str | None] = field(default_factory=Counter)


def verify(store: Store) -> Verified:
    """Reads every file; changes nothing except removing unfinished files of dead processes.

    Raises:
        StoreError: a folder cannot be read.
    """
    verified = Verified()
    planned, faults = _planned(store)
    with named(store.folder, "cannot be checked"):
        for path in sorted(path for path in store.folder.glob(".*.tmp") if is_temporary(path.name)):
            _count(path, verified, planned)
        for folder in sorted((store.folder / CELLS).glob("*")):
            if folder.is_symlink() or not folder.is_dir():
                verified.bad.append(f"{folder}: does not belong here")
                continue
            for path in sorted(folder.iterdir()):
                _count(path, verified, planned)
    verified.bad.extend(faults)
    return verified


def _planned(store: Store) -> tuple[Mapping[str, _Places] | None, tuple[str, ...]]:
    """The places that each cell fills, by key; None and the faults where there is no plan that can be read."""
    if not store.has_plan():
        return None, ()
    try:
        plan = store.read_plan()
    except StoreError as error:
        return None, error.lines
    tables = {table.name: table for table in plan.experiments}
    places: dict[str, list[tuple[PlannedCell, Experiment]]] = {}
    for cell in plan.cells:
        places.setdefault(cell.key, []).append((cell, tables[cell.experiment]))
    return places, ()


def _count(path: Path, verified: Verified, planned: Mapping[str, _Places] | None) -> None:
    file = RecordFile.of(str(path.parent), path.name)
    if file is not None and file.kind == "bad":
        verified.quarantined += 1
    elif file is not None:
        _read(file, verified, planned)
    elif is_abandoned(path.name):
        path.unlink(missing_ok=True)
        verified.removed += 1
    elif path.name != ".lock" and key_of_arrays(path.name) is None and not is_temporary(path.name):
        verified.bad.append(f"{path}: does not belong here")


def _read(file: RecordFile, verified: Verified, planned: Mapping[str, _Places] | None) -> None:
    record = load_or_report(file.path, file.key, verified.bad)
    if record is None:  # already reported, or another process has taken it
        return
    if hashlib.sha256(canonical_json(record.cell).encode()).hexdigest() != record.key:
        verified.bad.append(f"{file.path}: its cell does not have this key")
    elif record.status == "ok" and not (record.outcome and record.outcome.is_possible):
        verified.bad.append(f"{file.path}: is ok, but without a possible outcome")
    elif lines := [*_misplaced(file, record, (planned or {}).get(record.key, ())), *_bad_arrays(file, record)]:
        verified.bad.extend(lines)
    elif file.kind == "conflict":
        verified.conflicts.append(f"{file.path}: another result for the same cell")
    elif file.kind == "failure":
        verified.failures += 1
    else:
        verified.records += 1
        verified.made_on[made_on(record.provenance)] += 1
    if planned is not None and record.key not in planned:
        verified.unplanned.append(f"{file.path}: plan.json does not name its cell")


def _misplaced(file: RecordFile, record: Record, places: _Places) -> Iterator[str]:
    """A line for each place that the plan gives the record and that its cell is not of."""
    cell, dataset = record.cell, record.cell.get("dataset", {}).get("name")
    for place, table in places:
        planned = table.dataset, place.left_out or place.target, place.seed
        if planned != (own := (dataset, cell.get("target"), cell.get("seed"))):
            what = "{!r}, target {!r}, seed {!r}"
            yield f"{file.path}: plan.json has it at {what.format(*planned)}, but its cell is of {what.format(*own)}"
        elif record.target_labels and not cell.get("labelled_target") and place.method not in table.references:
            yield f"{file.path}: was given all target labels, but plan.json ranks its method {place.method}"


def _bad_arrays(file: RecordFile, record: Record) -> list[str]:
    """A line for each missing or damaged file of arrays that a result names."""
    lines: list[str] = []
    for name in record.saved if file.kind == "result" else ():
        try:
            read_bytes(record, file.path, name)
        except StoreError as error:
            lines.extend(error.lines)
    return lines
