"""A cache of a result folder's rows, so that an unchanged folder is read in a moment.

`.index` is a cache, never a result: one line with a sha256 of the rest, then JSON columns. A file counts as unchanged
if its size, inode and times are the same, including the time of change, which only the kernel sets. An index that is
damaged, or of another version or shape, is ignored.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

from msda_bench import __version__
from msda_bench.store.files import read_cache, write_cache

INDEX = ".index"
LAYOUT = 1
"""Raised when the columns change, or how they are read from a record."""
FEWEST = 1000
"""The number of new records from which the index is written."""
_BYTES = 2000
"""The maximum size of a record in the index, in bytes."""
_SETTLED = 2_000_000_000
"""Nanoseconds after which every file system shows a change in a file's times."""
Row: TypeAlias = tuple[Any, ...]
Stamp: TypeAlias = tuple[int, int, int, int]
"""Size, time of the last writing, time of the last change, and inode of a file."""


def stamp_of(path: str) -> Stamp | None:
    """The stamp of a file; None if it does not exist."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino


class Index:
    """The rows of a folder's records that have been read."""

    def __init__(self, folder: Path, columns: tuple[str, ...], records: int) -> None:
        self._path = folder / INDEX
        self._head = f"{LAYOUT} {__version__} {' '.join(columns)}"
        self._known = self._read(records)
        self._new = 0

    def find(self, key: str, stamp: Stamp | None) -> Row | None:
        """The row of a record whose file has not changed since it was read; None if it must be read."""
        known = self._known.get(key)
        return known[1] if known is not None and known[0] == stamp else None

    def add(self, key: str, stamp: Stamp | None, row: Row) -> None:
        """Keeps the row of a file that had this stamp before it was read, unless it may have changed just then."""
        if stamp is not None and time.time_ns() - max(stamp[1], stamp[2]) > _SETTLED:
            self._known[key] = stamp, row
            self._new += 1

    def write(self, keys: Iterable[str]) -> None:
        """Keeps the rows of these records for the next reading, if many are new and the folder is writable."""
        if self._new < FEWEST:
            return
        kept = {key: self._known[key] for key in keys if key in self._known}
        stamps, rows = zip(*kept.values(), strict=True)
        columns = map(_coded, zip(*rows, strict=True))
        data = json.dumps([self._head, list(kept), list(zip(*stamps, strict=True)), *columns]).encode()
        write_cache(self._path, data)

    def _read(self, records: int) -> dict[str, tuple[Stamp, Row]]:
        data = read_cache(self._path, _BYTES * max(records, FEWEST))
        if data is None:
            return {}
        try:
            head, keys, stamps, *columns = json.loads(data)
            if head != self._head:
                return {}
            rows = zip(*map(_decoded, columns), strict=True)
            return dict(zip(keys, zip(zip(*stamps, strict=True), rows, strict=True), strict=True))
        except (ValueError, TypeError, LookupError, RecursionError):
            return {}


def _coded(column: Row) -> dict[str, list[Any]] | list[Any]:
    """A column with few different values, as these values and their positions."""
    values = dict.fromkeys(column)
    if len(values) > len(column) // 4:
        return list(column)
    codes = {value: code for code, value in enumerate(values)}
    return {"values": list(values), "codes": [codes[value] for value in column]}


def _decoded(column: Any) -> Iterator[Any]:
    if isinstance(column, list):
        return map(_frozen, column)
    values = [_frozen(value) for value in column["values"]]
    return map(values.__getitem__, column["codes"])


def _frozen(value: Any) -> Any:
    """Turns mappings into tuples of pairs, so that equal ones can be found."""
    return tuple(map(tuple, value)) if isinstance(value, list) else value
