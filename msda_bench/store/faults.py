"""What a result folder's file names tell of records that are damaged or in conflict."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from msda_bench.store.names import RecordFile
from msda_bench.store.record import Record
from msda_bench.store.store import Store


@dataclass(frozen=True)
class Faults:
    """Cells that something is wrong with beside what their records tell.

    Attributes:
        damaged: keys of cells without a result of which a damaged record is there, set aside or not.
        conflicting: keys of cells of which another result is kept beside the one that counts.
    """

    damaged: frozenset[str] = frozenset()
    conflicting: frozenset[str] = frozenset()

    def __deepcopy__(self, memo: dict[int, Any]) -> Faults:
        """Itself, which never changes: pandas copies a frame's `attrs` with nearly every operation."""
        return self


def find_faults(store: Store, keys: Iterable[str], records: Mapping[str, Record]) -> Faults:
    """The same as `faults_among` of a store, for records that have been read."""
    return faults_among(store.scan(), keys, {key for key, record in records.items() if record.is_result})


def faults_among(files: Collection[RecordFile], keys: Iterable[str], ended: Collection[str]) -> Faults:
    """Looks for damaged and conflicting records.

    Args:
        files: of the result folder.
        keys: the cells that matter.
        ended: the cells with a result that could be read.
    """
    wanted = set(keys)
    damaged = {file.key for file in files if file.kind in {"result", "bad"} and file.key not in ended}
    conflicting = {file.key for file in files if file.kind == "conflict"}
    return Faults(frozenset(damaged & wanted), frozenset(conflicting & wanted))
