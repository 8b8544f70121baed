"""Checks every file of a result folder, and removes files that dead processes left."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

from msda_bench.errors import StoreError
from msda_bench.store.arrays import key_of_arrays, read_bytes
from msda_bench.store.codec import load_or_report
from msda_bench.store.files import is_abandoned, is_temporary, named
from msda_bench.store.names import RecordFile
from msda_bench.store.record import Record
from msda_bench.store.store import CELLS, Store
from msda_bench.suite.cell import canonical_json


@dataclass
class Verified:
    """The contents of a result folder: intact records and failures, files set aside earlier, leftovers removed now.

    `conflicts` has a line for each result that differs from the one that counts; `bad` has one for each file that is
    damaged, of a newer msda-bench, or does not belong there.
    """

    records: int = 0
    failures: int = 0
    aside: int = 0
    removed: int = 0
    conflicts: list[str] = field(default_factory=list)
    bad: list[str] = field(default_factory=list)


def verify(store: Store) -> Verified:
    """Reads every file; changes nothing except removing unfinished files of dead processes.

    Raises:
        StoreError: a folder cannot be read.
    """
    found = Verified()
    with named(store.folder, "cannot be checked"):
        for path in sorted(path for path in store.folder.glob(".*.tmp") if is_temporary(path.name)):
            _count(path, found)
        for folder in sorted((store.folder / CELLS).glob("*")):
            if folder.is_symlink() or not folder.is_dir():
                found.bad.append(f"{folder}: does not belong here")
                continue
            for path in sorted(folder.iterdir()):
                _count(path, found)
    if store.has_plan():
        try:
            store.read_plan()
        except StoreError as error:
            found.bad.extend(error.lines)
    return found


def _count(path: Path, found: Verified) -> None:
    file = RecordFile.of(str(path.parent), path.name)
    if file is not None and file.kind == "bad":
        found.aside += 1
    elif file is not None:
        _read(file, found)
    elif is_abandoned(path.name):
        path.unlink(missing_ok=True)
        found.removed += 1
    elif path.name != ".lock" and key_of_arrays(path.name) is None and not is_temporary(path.name):
        found.bad.append(f"{path}: does not belong here")


def _read(file: RecordFile, found: Verified) -> None:
    record = load_or_report(file.path, file.key, found.bad)
    if record is None:  # already reported, or another process has set it aside
        return
    if hashlib.sha256(canonical_json(record.cell).encode()).hexdigest() != record.key:
        found.bad.append(f"{file.path}: its cell does not have this key")
    elif record.status == "ok" and not (record.outcome and record.outcome.is_possible):
        found.bad.append(f"{file.path}: is ok, but without a possible outcome")
    elif file.kind == "result" and (lines := _bad_arrays(file, record)):
        found.bad.extend(lines)
    elif file.kind == "conflict":
        found.conflicts.append(f"{file.path}: another result for the same cell")
    elif file.kind == "failure":
        found.failures += 1
    else:
        found.records += 1


def _bad_arrays(file: RecordFile, record: Record) -> list[str]:
    """A line for each missing or damaged file of arrays that the record names."""
    lines: list[str] = []
    for name in record.saved:
        try:
            read_bytes(record, file.path, name)
        except StoreError as error:
            lines.extend(error.lines)
    return lines
