"""Copies the results of one result folder into another."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from msda_bench.errors import StoreError
from msda_bench.store.arrays import read_bytes
from msda_bench.store.codec import load_or_report
from msda_bench.store.names import RecordFile
from msda_bench.store.record import Record
from msda_bench.store.store import PLAN, Store


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
    for take in _take_plan, _take_commands:
        try:
            take(into, source, merged)
        except StoreError as error:
            merged.bad.extend(error.lines)
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
    elif into.publish(_with_arrays(file, record, merged)):
        merged.copied += 1
    elif file.kind == "result":
        merged.present += 1


def _with_arrays(file: RecordFile, record: Record, merged: Merged) -> Record:
    """The record with its files of arrays; reports a missing or damaged one in a line."""
    arrays: dict[str, bytes] = {}
    for name in record.saved:
        try:
            arrays[name] = read_bytes(record, file.path, name)
        except StoreError as error:
            merged.bad.extend(error.lines)
    return replace(record, arrays=arrays)


def _take_plan(into: Store, source: Store, merged: Merged) -> None:
    if not source.has_plan():
        return
    plan = source.read_plan()
    if not into.has_plan():
        into.write_plan(plan)
    elif into.read_plan() != plan:
        kept = f"{into.folder / PLAN} stays, and cells that it does not name stay unused"
        merged.notes.append(f"{source.folder / PLAN}: is another plan; {kept}")


def _take_commands(into: Store, source: Store, _: Merged) -> None:
    into.add_commands(source.commands())
