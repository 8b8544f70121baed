"""The files of records: logs, each appended to by one process, and the sealed file of everything earlier.

A log is `log/<machine>-<process>-<time>.jsonl`. Its writer appends whole lines; a crash leaves at most a torn last
line. The sealed file is a row of gzip members of whole lines, so that a damaged byte costs the lines near it alone, and
a record is read again without those before it.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import gzip
import os
import time
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias

from msda_bench.atomic import host, make_folder, opened, sync
from msda_bench.store.record import LIMIT

SEALED = "records.jsonl.gz"
LOGS = "log"
UNFINISHED = "ends in an unfinished line"
_REMOVED = "sealed-"
"""Prefix of a log whose lines are in the sealed file, too, while it is being removed."""
_MEMBER = 1 << 18
"""The size of a gzip member's lines in bytes."""
_PIECE = 1 << 13
_MOST = 1 << 22
"""The maximum number of bytes that a piece of gzip may expand to."""
_HEAD = b"\x1f\x8b\x08\x00\x00\x00\x00\x00"
"""How a member begins: gzip without a name or a time."""


class Place(NamedTuple):
    """Where a line stands: in the gzip member at byte `member` of the sealed file, or in a log, where that is 0."""

    path: Path
    member: int
    start: int
    stop: int


Line: TypeAlias = tuple[Place, bytes, str]
"""A line and its place, or, without bytes, what is wrong there."""


def read_sealed(path: Path) -> Iterator[Line]:
    """The lines of a sealed file.

    Raises:
        OSError: it cannot be read, or is not a regular file.
    """
    with opened(path, os.O_RDONLY) as handle:
        at: int | None = 0
        while at is not None:
            member, (text, after, fault) = at, _inflate(handle, at)
            start = 0
            while stop := text.find(b"\n", start) + 1:
                yield Place(path, member, start, stop), text[start:stop], ""
                start = stop
            if fault or start < len(text):
                yield Place(path, member, start, len(text)), b"", fault or UNFINISHED
            if not fault and not text:
                return
            at = _next_member(handle, at) if fault else after


def read_log(path: Path, start: int = 0) -> Iterator[Line]:
    """The whole lines of a log from a byte on; raises as `read_sealed`."""
    with opened(path, os.O_RDONLY) as handle:
        os.lseek(handle, start, os.SEEK_SET)
        rest = b""
        while piece := os.read(handle, _MOST):
            *whole, rest = (rest + piece).split(b"\n")
            for text in whole:
                yield Place(path, 0, start, start + len(text) + 1), text + b"\n", ""
                start += len(text) + 1
            if len(rest) > LIMIT:
                break
        if rest:
            fault = UNFINISHED if len(rest) <= LIMIT else f"has a line of more than {LIMIT} bytes"
            yield Place(path, 0, start, start + len(rest)), b"", fault


def read_line(place: Place) -> bytes:
    """The bytes at a place, as they are now; raises as `read_sealed`."""
    if place.path.name == SEALED:
        return _member(place.path, place.member, place.path.stat().st_mtime_ns)[place.start : place.stop]
    with opened(place.path, os.O_RDONLY) as handle:
        return os.pread(handle, place.stop - place.start, place.start)


@functools.lru_cache(maxsize=64)  # neighbours are read one after the other, or in a few rows
def _member(path: Path, member: int, _written: int) -> bytes:
    with opened(path, os.O_RDONLY) as handle:
        return _inflate(handle, member)[0]


def _inflate(handle: int, at: int) -> tuple[bytes, int, str]:
    """What the gzip member at a place expands to, the place after it, and what is wrong with it, if anything."""
    inflater, parts = zlib.decompressobj(wbits=31), list[bytes]()
    try:
        while not inflater.eof:
            if not (piece := os.pread(handle, _PIECE, at)):
                return b"".join(parts), at, "is truncated"
            parts.append(inflater.decompress(piece, _MOST))
            if inflater.unconsumed_tail:
                return b"", at, f"expands to more than {_MOST // _PIECE} times its size"
            at += len(piece)
    except zlib.error:
        return b"".join(parts), at, "is damaged"
    return b"".join(parts), at - len(inflater.unused_data), ""


def _next_member(handle: int, at: int) -> int | None:
    """The place of the next member after a damaged one."""
    rest = os.pread(handle, os.fstat(handle).st_size - at, at)
    place = rest.find(_HEAD, 1)
    return None if place < 0 else at + place


def members(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The gzip members of a sealed file, the last one empty: without it, a file cut between two would seem whole."""
    group, size = list[bytes](), 0
    for line in lines:
        group.append(line)
        size += len(line)
        if size >= _MEMBER:
            yield gzip.compress(b"".join(group), 6, mtime=0)
            group, size = [], 0
    if group:
        yield gzip.compress(b"".join(group), 6, mtime=0)
    yield gzip.compress(b"", 6, mtime=0)


class Writer:
    """Appends lines to a log of its own in a result folder, which begins with the first."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / LOGS
        self._path: Path | None = None
        self._process = 0

    def append(self, line: bytes) -> Path:
        """Writes a line, durably, and returns the log; if another process sealed the log meanwhile, into another.

        Raises:
            OSError: it cannot be written; no part of it is left where the disk lets it be cut off.
            StoreError: the folder of logs is a link.
        """
        while True:
            with contextlib.suppress(FileNotFoundError):  # it was sealed, and the empty folder removed
                path, self._path = self._begun(), None
                with opened(path, os.O_WRONLY | os.O_APPEND) as handle:
                    _write(handle, line)
                    if os.path.samestat(os.fstat(handle), path.stat()):
                        self._path = path
                        return path

    def _begun(self) -> Path:
        if self._path is None or self._process != os.getpid():
            make_folder(self._folder)
            self._process = os.getpid()
            self._path = self._folder / f"{host()}-{self._process}-{time.time_ns():016x}.jsonl"
            with opened(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL):
                sync(self._folder)
        return self._path


def _write(handle: int, line: bytes) -> None:
    before = os.fstat(handle).st_size
    try:
        written = os.write(handle, line)
        os.fsync(handle)
    except OSError:
        with contextlib.suppress(OSError):
            os.ftruncate(handle, before)
        raise
    if written != len(line):
        os.ftruncate(handle, before)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def stamp(path: Path) -> tuple[int, int, int]:
    """Changes when another file takes the path; zeros without one."""
    with contextlib.suppress(OSError):
        status = path.stat()
        return status.st_ino, status.st_size, status.st_mtime_ns
    return 0, 0, 0


def remove(path: Path, size: int) -> None:
    """Removes a log that was read up to this size, unless its writer, which looks at its name, has added more."""
    moved = path if path.name.startswith(_REMOVED) else path.with_name(_REMOVED + path.name)
    with contextlib.suppress(FileNotFoundError):
        path.rename(moved)
        if moved.stat().st_size <= size:
            moved.unlink()
