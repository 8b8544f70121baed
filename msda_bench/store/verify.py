"""Checks every file of a result folder, and clears away what dead processes left."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from msda_bench.errors import StoreError
from msda_bench.store.codec import BadRecordError, decode
from msda_bench.store.files import is_abandoned, is_temporary, named
from msda_bench.store.store import CELLS, PLAN, Store
from msda_bench.suite.cell import canonical_json

_RECORD = re.compile(r"(?P<key>[0-9a-f]{64})(\.(?P<kind>failure|conflict)-[1-9][0-9]*)?\.json")
_ASIDE = re.compile(r"[0-9a-f]{64}\.bad-[1-9][0-9]*")


@dataclass
class Verified:
    """What a result folder holds.

    Attributes:
        records: whole results.
        failures: whole failures.
        aside: damaged files that were set aside earlier.
        removed: files in the making that dead processes left, now gone.
        conflicts: a line for each result that differs from the one that counts.
        bad: a line for each file that is damaged or does not belong there.
    """

    records: int
    failures: int
    aside: int
    removed: int
    conflicts: list[str]
    bad: list[str]


def verify(store: Store) -> Verified:
    """Reads every file; changes nothing but to remove what dead processes left unfinished.

    Raises:
        StoreError: a folder cannot be read.
    """
    found = Verified(0, 0, 0, 0, [], [])
    with named(store.folder, "cannot be checked"):
        for path in sorted(path for path in store.folder.glob(".*.tmp") if is_temporary(path.name)):
            _count(path, found)
        for folder in sorted((store.folder / CELLS).glob("*")):
            _visit(folder, found)
    if (store.folder / PLAN).exists():
        try:
            store.read_plan()
        except StoreError as error:
            found.bad.extend(error.lines)
    return found


def _visit(folder: Path, found: Verified) -> None:
    if folder.is_symlink() or not folder.is_dir():
        found.bad.append(f"{folder}: does not belong here")
        return
    for path in sorted(folder.iterdir()):
        _count(path, found)


def _count(path: Path, found: Verified) -> None:
    name = _RECORD.fullmatch(path.name)
    if name is not None and name["key"].startswith(path.parent.name):
        _read(path, name, found)
    elif _ASIDE.fullmatch(path.name):
        found.aside += 1
    elif is_abandoned(path.name):
        path.unlink(missing_ok=True)
        found.removed += 1
    elif path.name != ".lock" and not is_temporary(path.name):
        found.bad.append(f"{path}: does not belong here")


def _read(path: Path, name: re.Match[str], found: Verified) -> None:
    try:
        record = decode(path.read_bytes(), name["key"])
    except FileNotFoundError:  # another process set it aside meanwhile
        return
    except BadRecordError as bad:
        found.bad.append(f"{path}: {bad}")
        return
    if hashlib.sha256(canonical_json(record.cell).encode()).hexdigest() != record.key:
        found.bad.append(f"{path}: its cell does not have this key")
    elif name["kind"] == "conflict":
        found.conflicts.append(f"{path}: another result for the same cell")
    elif name["kind"] == "failure":
        found.failures += 1
    else:
        found.records += 1
