"""What goes through every record of a result folder: a check of all, and a copy into another folder."""

from __future__ import annotations

import contextlib
import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from msda_bench.atomic import is_abandoned, is_temporary, named
from msda_bench.errors import StoreError
from msda_bench.store.record import BadRecordError, Record, decode, made_on
from msda_bench.store.store import PLAN, Store, Stored
from msda_bench.suite.cell import canonical_json
from msda_bench.suite.plan import Experiment, PlannedCell

_Places = Sequence[tuple[PlannedCell, Experiment]]


@dataclass
class Verified:
    """The contents of a result folder: intact results, attempts without one, and leftovers removed now.

    `conflicts` has a line for each cell with another result than the one that counts, `bad` one for each record that
    is damaged, or in another place of plan.json than its cell is of. `unplanned` has one for each record that plan.json
    does not name, as after a change of the suite. `made_on` counts the records by what they say they were made on,
    `without` those that lack their arrays, by kind.
    """

    records: int = 0
    failures: int = 0
    removed: int = 0
    conflicts: list[str] = field(default_factory=list)
    bad: list[str] = field(default_factory=list)
    unplanned: list[str] = field(default_factory=list)
    made_on: Counter[str | None] = field(default_factory=Counter)
    without: Counter[str] = field(default_factory=Counter)


def verify(store: Store) -> Verified:
    """Reads every record whole; changes nothing except removing unfinished files of dead processes.

    Raises:
        StoreError: the folder cannot be read, or a newer msda-bench wrote a record.
    """
    verified = Verified()
    planned = _planned(store, verified.bad)
    with named(store.folder, "cannot be checked"):
        for path in (path for path in store.folder.rglob(".*.tmp") if is_temporary(path.name)):
            if is_abandoned(path.name):
                path.unlink(missing_ok=True)
                verified.removed += 1
    store.refresh()
    verified.bad += store.drain_warnings()
    for stored in [*store.results.values(), *(one for of in store.failures.values() for one in of)]:
        _check(store, stored, verified, planned)
    verified.conflicts += store.conflicting(store.results).values()
    return verified


def _planned(store: Store, bad: list[str]) -> Mapping[str, _Places] | None:
    """The places that each cell fills, by key; None where there is no plan that can be read."""
    if not store.has_plan():
        return None
    try:
        plan = store.read_plan()
    except StoreError as error:
        bad += error.lines
        return None
    tables = {table.name: table for table in plan.experiments}
    places: dict[str, list[tuple[PlannedCell, Experiment]]] = {}
    for cell in plan.cells:
        places.setdefault(cell.key, []).append((cell, tables[cell.experiment]))
    return places


def _check(store: Store, stored: Stored, verified: Verified, planned: Mapping[str, _Places] | None) -> None:
    where = f"{stored.place.path}: record {stored.head.key}"
    try:
        record = decode(store.line(stored))
    except BadRecordError as bad:
        verified.bad.append(f"{where}: {bad}")
        return
    faults: list[str] = []
    absent = [name.split(".")[1].split("-")[0] for name in stored.arrays if not _is_kept(store, stored, name, faults)]
    if hashlib.sha256(canonical_json(record.cell).encode()).hexdigest() != record.key:
        verified.bad.append(f"{where}: its cell does not have this key")
    elif record.status == "ok" and not (record.outcome and record.outcome.is_possible):
        verified.bad.append(f"{where}: is ok, but without a possible outcome")
    elif lines := [*(f"{where}: {why}" for why in _misplaced(record, (planned or {}).get(record.key, ()))), *faults]:
        verified.bad.extend(lines)
    elif record.is_result:
        verified.records += 1
        verified.without.update(absent)
        verified.made_on[made_on(record.provenance)] += 1
    else:
        verified.failures += 1
    if planned is not None and record.key not in planned:
        verified.unplanned.append(f"{where}: plan.json does not name its cell; run the suite that has it")


def _misplaced(record: Record, places: _Places) -> Iterator[str]:
    """What is wrong with each place that the plan gives the record and that its cell is not of."""
    cell, dataset = record.cell, record.cell.get("dataset", {}).get("name")
    for place, table in places:
        planned = table.dataset, place.left_out or place.target, place.seed
        if planned != (trained := (dataset, cell.get("target"), cell.get("seed"))):
            place_of = "{!r}, target {!r}, seed {!r}".format
            yield f"plan.json has it at {place_of(*planned)}, but its cell is of {place_of(*trained)}"
        elif record.target_labels and not cell.get("labelled_target") and place.method not in table.references:
            yield f"was given all target labels, but plan.json ranks its method {place.method}"


def _is_kept(store: Store, stored: Stored, name: str, bad: list[str]) -> bool:
    with _reported(bad):
        return store.arrays.read(name, stored.arrays[name]) is not None


@dataclass
class Merged:
    """The outcome of a merge: records copied, and those already there; lines on what is wrong; notes on what is not."""

    copied: int = 0
    present: int = 0
    lines: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def merge(into: Store, source: Store) -> Merged:
    """Copies the lines of records that are missing, with their arrays, the plan and commands; `source` does not change.

    Raises:
        StoreError: a folder cannot be read or written.
    """
    into.refresh()
    merged, kept = Merged(lines=source.refresh().drain_warnings()), into.arrays.names()
    for stored in source.in_order():
        for name, sha256 in stored.arrays.items():
            with _reported(merged.lines):
                if name not in kept and (data := source.arrays.read(name, sha256)) is not None:
                    into.arrays.add(name, data)
        merged.present += into.has(stored)
        if not into.has(stored):
            into.append(source.line(stored))
            merged.copied += 1
    with _reported(merged.lines):
        _copy_plan(into, source, merged)
        into.add_commands(source.commands())
    return merged


@contextlib.contextmanager
def _reported(bad: list[str]) -> Iterator[None]:
    try:
        yield
    except StoreError as error:
        bad.extend(error.lines)


def _copy_plan(into: Store, source: Store, merged: Merged) -> None:
    if not source.has_plan():
        return
    plan = source.read_plan()
    if not into.has_plan():
        into.write_plan(plan)
    elif into.read_plan() != plan:
        kept = f"{into.folder / PLAN} stays, and cells that it does not name stay unused"
        merged.notes.append(f"{source.folder / PLAN}: is another plan; {kept}")
