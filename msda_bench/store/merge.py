"""Copies the results of one result folder into another."""

from __future__ import annotations

from dataclasses import dataclass

from msda_bench.errors import StoreError
from msda_bench.store.codec import BadRecordError, decode
from msda_bench.store.files import named
from msda_bench.store.store import PLAN, Store


@dataclass
class Merged:
    """What came of it.

    Attributes:
        copied: results that were new.
        present: results that were there already.
        conflicts: a line for each cell whose two results differ; the first stays, the other is kept beside it.
        bad: a line for each result that could not be copied.
    """

    copied: int
    present: int
    conflicts: list[str]
    bad: list[str]


def merge(into: Store, source: Store) -> Merged:
    """Copies what `into` lacks; `source` is not changed, and a record that is there is never replaced.

    Raises:
        StoreError: a folder cannot be read or written.
    """
    found = Merged(0, 0, [], [])
    known = len(into.conflicts)
    for key in sorted(source.keys()):
        path = source.path(key)
        try:
            with named(path, "cannot be read"):
                record = decode(path.read_bytes(), key)
        except BadRecordError as bad:
            found.bad.append(f"{path}: {bad}")
            continue
        if into.publish(record):
            found.copied += 1
        else:
            found.present += 1
    if not (into.folder / PLAN).exists() and (source.folder / PLAN).exists():
        try:
            into.write_plan(source.read_plan())
        except StoreError as error:
            found.bad.extend(error.lines)
    found.conflicts.extend(into.conflicts[known:])
    return found
