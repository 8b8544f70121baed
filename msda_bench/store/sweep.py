"""What goes through every file of a result folder: a check of all, and a copy into another folder."""

from __future__ import annotations

import contextlib
import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from msda_bench.atomic import is_abandoned, is_temporary, named
from msda_bench.errors import StoreError
from msda_bench.store.files import RecordFile, key_of_arrays, load_or_report, read_bytes
from msda_bench.store.record import Record, made_on
from msda_bench.store.store import CELLS, PLAN, Store
from msda_bench.suite.cell import canonical_json
from msda_bench.suite.plan import Experiment, PlannedCell

_Places = Sequence[tuple[PlannedCell, Experiment]]


@dataclass
class Verified:
    """The contents of a result folder: intact records and failures, files in quarantine, leftovers removed now.

    `conflicts` has a line for each result that differs from the one that counts; `bad` has one for each file that is
    damaged, of a newer msda-bench, in another place of plan.json than its cell is of, or does not belong there.
    `unplanned` has one for each record that plan.json does not name, as after a change of the suite. `made_on` counts
    the whole records by what they say they were made on, `without` those that lack a file of arrays, by its kind.
    """

    records: int = 0
    failures: int = 0
    quarantined: int = 0
    removed: int = 0
    conflicts: list[str] = field(default_factory=list)
    bad: list[str] = field(default_factory=list)
    unplanned: list[str] = field(default_factory=list)
    made_on: Counter[str | None] = field(default_factory=Counter)
    without: Counter[str] = field(default_factory=Counter)


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
    arrays, damaged = _arrays(file, record)
    if hashlib.sha256(canonical_json(record.cell).encode()).hexdigest() != record.key:
        verified.bad.append(f"{file.path}: its cell does not have this key")
    elif record.status == "ok" and not (record.outcome and record.outcome.is_possible):
        verified.bad.append(f"{file.path}: is ok, but without a possible outcome")
    elif lines := [*_misplaced(file, record, (planned or {}).get(record.key, ())), *damaged]:
        verified.bad.extend(lines)
    elif file.kind == "conflict":
        verified.conflicts.append(f"{file.path}: another result for the same cell")
    elif file.kind == "failure":
        verified.failures += 1
    else:
        verified.records += 1
        verified.without.update(record.saved.keys() - arrays - {"target_predictions"})  # no longer kept
        verified.made_on[made_on(record.provenance)] += 1
    if planned is not None and record.key not in planned:
        verified.unplanned.append(
            f"{file.path}: plan.json does not name its cell; remove the file, or run the suite that has it"
        )


def _misplaced(file: RecordFile, record: Record, places: _Places) -> Iterator[str]:
    """A line for each place that the plan gives the record and that its cell is not of."""
    cell, dataset = record.cell, record.cell.get("dataset", {}).get("name")
    for place, table in places:
        planned = table.dataset, place.left_out or place.target, place.seed
        if planned != (trained := (dataset, cell.get("target"), cell.get("seed"))):
            place_of = "{!r}, target {!r}, seed {!r}".format
            yield f"{file.path}: plan.json has it at {place_of(*planned)}, but its cell is of {place_of(*trained)}"
        elif record.target_labels and not cell.get("labelled_target") and place.method not in table.references:
            yield f"{file.path}: was given all target labels, but plan.json ranks its method {place.method}"


def _arrays(file: RecordFile, record: Record) -> tuple[dict[str, bytes], list[str]]:
    """The files of arrays that a record names and that are there, and a line for each that is damaged."""
    arrays: dict[str, bytes] = {}
    bad: list[str] = []
    for name in record.saved:
        with _reported(bad):
            data = read_bytes(record, file.path, name)
            arrays |= {} if data is None else {name: data}
    return arrays, bad


@contextlib.contextmanager
def _reported(bad: list[str]) -> Iterator[None]:
    try:
        yield
    except StoreError as error:
        bad.extend(error.lines)


@dataclass
class Merged:
    """The outcome of a merge.

    Attributes:
        copied: results that were new.
        present: results that were already there.
        failures: attempts without a result that were new.
        conflicts: a line for each cell with another result; the first stays, the other is kept with it.
        bad: a line for each record that could not be copied, or whose place held a damaged one.
        notes: lines that the user must see, though nothing is wrong.
    """

    copied: int = 0
    present: int = 0
    failures: int = 0
    conflicts: list[str] = field(default_factory=list)
    bad: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def merge(into: Store, source: Store) -> Merged:
    """Copies missing records to `into`; `source` does not change, and an existing record is never replaced.

    Raises:
        StoreError: a folder cannot be read or written.
    """
    merged = Merged()
    known = len(into.conflicts), len(into.damaged)
    for file in sorted(source.scan(), key=RecordFile.order):
        if file.kind != "bad":
            _copy(file, into, merged)
    with _reported(merged.bad):
        _copy_plan(into, source, merged)
    with _reported(merged.bad):
        into.add_commands(source.commands())
    merged.conflicts.extend(dict.fromkeys(into.conflicts[known[0] :]))
    merged.bad.extend(into.damaged[known[1] :])
    return merged


def _copy(file: RecordFile, into: Store, merged: Merged) -> None:
    record = load_or_report(file.path, file.key, merged.bad)
    if record is None:
        return
    if not record.is_result:
        if record not in into.failures(file.key):
            into.publish(record)
            merged.failures += 1
        return
    arrays, bad = _arrays(file, record)
    merged.bad.extend(bad)
    if into.publish(replace(record, arrays=arrays)):
        merged.copied += 1
    elif file.kind == "result":
        merged.present += 1


def _copy_plan(into: Store, source: Store, merged: Merged) -> None:
    if not source.has_plan():
        return
    plan = source.read_plan()
    if not into.has_plan():
        into.write_plan(plan)
    elif into.read_plan() != plan:
        kept = f"{into.folder / PLAN} stays, and cells that it does not name stay unused"
        merged.notes.append(f"{source.folder / PLAN}: is another plan; {kept}")
