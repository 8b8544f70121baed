"""A part of an array, made in a process of its own and written to a file."""

from __future__ import annotations

import contextlib
import hashlib
import math
import pkgutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from msda_bench.api import Array, Row, Rows
from msda_bench.atomic import written
from msda_bench.blame import blaming, package
from msda_bench.cache import REMEDY
from msda_bench.errors import BenchError, DataError, PluginError


@dataclass(frozen=True)
class Part:
    """Some rows of an array, and the file that they become."""

    path: Path
    rows: Rows

    @property
    def size(self) -> int:
        """The number of bytes of its rows."""
        return len(self.rows.rows) * math.prod(self.rows.shape) * np.dtype(self.rows.dtype).itemsize


class Made(NamedTuple):
    """The report on a part: words and a row's name for each note and each fault."""

    notes: tuple[tuple[str, str], ...] = ()
    faults: tuple[tuple[str, str], ...] = ()


class _IncompleteError(Exception):
    """A part cannot be kept."""


def make_part(part: Part) -> Made:
    """Writes each row when it is made, so that few are in memory, then their sha256; nothing if one cannot be made.

    Raises:
        DataError: the file cannot be written, or no other part can be made, either.
    """
    try:
        return _written(part)
    except BenchError as error:
        raise DataError(*error.lines) from None
    except OSError as error:
        raise DataError(f"{part.path}: cannot be written: {error.strerror}; {REMEDY}") from None


def _written(part: Part) -> Made:
    made, rows, digest = Made(), part.rows, hashlib.sha256()
    size = rows.together or 1
    with contextlib.suppress(_IncompleteError), written(part.path) as stream:
        for start in range(0, len(rows.rows), size):
            some = rows.rows[start : start + size]
            try:
                array, note = _made(replace(rows, rows=some))
            except DataError as error:
                if rows.together:
                    raise
                made = made._replace(faults=(*made.faults, (str(error), some[0].name)))
                continue
            content = np.ascontiguousarray(array).data
            digest.update(content)
            stream.write(content)
            if note is not None:
                made = made._replace(notes=(*made.notes, (note, some[0].name)))
        if made.faults:
            raise _IncompleteError
        stream.write(digest.digest())
    return made


def _made(rows: Rows) -> tuple[Array, str | None]:
    contents, shape, note = [_content(row, rows) for row in rows.rows], rows.shape, None
    fault = f"{rows.make} failed while {rows.doing} {rows.rows[0].name}"
    try:
        with blaming({package(rows.make)}, fault, (MemoryError,)):
            make = pkgutil.resolve_name(rows.make)
            if rows.together:
                array, shape = make(contents, **rows.options), (len(contents), *shape)
            else:
                array, note = make(contents[0], **rows.options)
    except MemoryError:
        raise DataError("needs more memory than there is") from None
    if array.shape != shape or array.dtype != rows.dtype:
        raise PluginError(f"{fault}: it made {array.dtype} of shape {array.shape}, not {rows.dtype} of {shape}")
    return array, note


def _content(row: Row, rows: Rows) -> bytes:
    place = f"{row.path}: " if rows.together else ""  # the fault of a single row is reported with its name
    if row.size > rows.largest:
        raise DataError(f"{place}larger than {rows.largest >> 20} MiB")
    try:
        with Path(row.path).open("rb") as stream:
            stream.seek(row.offset)
            content = stream.read(row.size)
    except OSError as error:
        raise DataError(f"{place}not readable ({error.strerror})") from None
    if len(content) < row.size:
        raise DataError(f"{place}truncated since it was listed")
    return content
