"""The files of records: logs, each appended to by one process, and the sealed file of everything earlier.

A log is `log/<machine>-<process>-<time>.jsonl`. Its writer appends whole lines; a crash leaves at most a torn last
line. The sealed file is a row of gzip members of whole lines, so that a damaged byte costs the lines near it alone.
It stays open, and what was read of a log is kept as gzip, so that a record can be read again after another process has
replaced its file.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import gzip
import os
import time
import weakref
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias

from msda_bench.atomic import host, make_folder, opened, sync
from msda_bench.store.codec import LIMIT

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
_LARGEST = 1 << 34
"""The maximum size of a sealed file in bytes."""
_BLOCK = 1 << 20
"""The size of what is read of a log at once."""
_GZIP = b"\x1f\x8b\x08"
"""How every gzip member begins."""
RECORD = b'{"record":'
"""How every record's line begins."""


class SealedFile:
    """A sealed file, which is read in blocks and stays open, so that its bytes stay there if another replaces it.

    Attributes:
        path: its path when it was opened.
        size: the number of its bytes.

    Raises:
        OSError: it cannot be opened, is not a regular file, or is too large.
    """

    def __init__(self, path: Path) -> None:
        with opened(path, os.O_RDONLY) as handle:
            self.size = os.fstat(handle).st_size
            if self.size > _LARGEST:
                raise OSError(errno.EFBIG, f"Larger than {_LARGEST} bytes")
            self._handle = os.dup(handle)
        self.path = path
        self._block = b""
        self._block_at = 0
        weakref.finalize(self, os.close, self._handle)

    def __reduce__(self) -> tuple[type[SealedFile], tuple[Path]]:
        return type(self), (self.path,)

    def read(self, start: int, stop: int) -> bytes:
        """The bytes from one place to another; fewer at the end of the file."""
        before = start - self._block_at
        if not 0 <= before <= len(self._block) - (stop - start):
            self._block = os.pread(self._handle, max(_BLOCK, stop - start), start)
            self._block_at = start
            before = 0
        return self._block[before : before + stop - start]

    def next_member(self, at: int) -> int:
        """The place of the next gzip member from a place on, or the end."""
        while at < self.size:
            some = self.read(at, at + _BLOCK)
            place = some.find(_GZIP)
            if place >= 0:
                return at + place
            if len(some) < len(_GZIP):
                break
            at += len(some) - len(_GZIP) + 1  # it may begin at the end of a block
        return self.size


class Member(NamedTuple):
    """A gzip member of a sealed file, from one byte to another."""

    file: SealedFile
    start: int
    stop: int


class Line(NamedTuple):
    """A line: its place in what a gzip member expands to, or, with a `fault`, what is wrong in its place."""

    path: Path
    member: Member | bytes
    start: int
    stop: int
    fault: str = ""

    def read(self) -> bytes:
        """Its bytes; others, or none, if its file was changed in place."""
        return _expanded(self.member)[self.start : self.stop]


_Lines: TypeAlias = Iterator[tuple[Line, bytes]]
"""Lines with their bytes."""


def read_sealed(path: Path) -> _Lines:
    """The lines of a sealed file, with their bytes; an OSError if it cannot be read, or is not a regular file.

    The whole file is read, since others may have been joined to it, as by `cat`: after its empty last member more
    members may follow, or lines that nobody compressed.
    """
    file = SealedFile(path)
    at = 0
    is_ended = False
    fault = ""
    while at < file.size:
        if file.read(at, at + len(_GZIP)) == _GZIP:
            text, end, fault = _inflate(file, at)
            yield from _lines(path, Member(file, at, end), text, fault)
            is_ended = not fault and not text
            at = file.next_member(at + 1) if fault else end
        else:
            end = file.next_member(at)
            text = file.read(at, end)
            fault = "" if RECORD in text else "is damaged"
            yield from _lines(path, b"", b"", fault) if fault else _uncompressed(path, text)
            at = end
    if not is_ended and not fault:
        yield Line(path, b"", 0, 0, "is truncated"), b""


def _uncompressed(path: Path, text: bytes) -> _Lines:
    start = 0
    while start < len(text):
        stop = text.find(b"\n", start + _MEMBER) + 1 or len(text)
        some = text[start:stop]
        yield from _lines(path, gzip.compress(some, 1), some)
        start = stop


def read_log(path: Path, start: int) -> _Lines:
    """The lines of a log from a byte on, with their bytes; raises as `read_sealed`."""
    with opened(path, os.O_RDONLY) as handle:
        os.lseek(handle, start, os.SEEK_SET)
        rest = b""
        while len(rest) <= LIMIT and (piece := os.read(handle, _BLOCK)):
            rest += piece
            end = rest.rfind(b"\n") + 1
            yield from _lines(path, gzip.compress(rest[:end], 1), rest[:end])
            rest = rest[end:]
        if rest:
            fault = UNFINISHED if len(rest) <= LIMIT else f"has a line of more than {LIMIT} bytes"
            yield Line(path, b"", 0, len(rest), fault), b""


def _lines(path: Path, member: Member | bytes, text: bytes, fault: str = "") -> _Lines:
    start = 0
    while stop := text.find(b"\n", start) + 1:
        yield Line(path, member, start, stop), text[start:stop]
        start = stop
    if fault or start < len(text):
        yield Line(path, b"", start, len(text), fault or UNFINISHED), b""


@functools.lru_cache(maxsize=64)  # neighbours are read one after the other, or in a few rows
def _expanded(member: Member | bytes) -> bytes:
    if isinstance(member, bytes):
        return zlib.decompressobj(wbits=31).decompress(member)
    data = member.file.read(member.start, member.stop)
    try:
        return zlib.decompressobj(wbits=31).decompress(data)
    except zlib.error:
        return b""


def _inflate(file: SealedFile, at: int) -> tuple[bytes, int, str]:
    """Expands the gzip member at a place; returns its bytes, the place after it, and a fault if it is damaged."""
    inflater = zlib.decompressobj(wbits=31)
    parts: list[bytes] = []
    try:
        while not inflater.eof:
            piece = file.read(at, at + _PIECE)
            if not piece:
                return b"".join(parts), at, "is truncated"
            parts.append(inflater.decompress(piece, _MOST))
            if inflater.unconsumed_tail:
                return b"", at, f"expands to more than {_MOST // _PIECE} times its size"
            at += len(piece)
    except zlib.error:
        return b"".join(parts), at, "is damaged"
    return b"".join(parts), at - len(inflater.unused_data), ""


def members(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The gzip members of a sealed file, the last one empty: without it, a file cut between two would seem whole."""
    text = bytearray()
    for line in lines:
        text += line
        if len(text) >= _MEMBER:
            yield gzip.compress(text, 6, mtime=0)
            text.clear()
    if text:
        yield gzip.compress(text, 6, mtime=0)
    yield gzip.compress(b"", 6, mtime=0)


class Writer:
    """Appends lines to a log of its own in a result folder, which begins with the first."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / LOGS
        self._path: Path | None = None
        self._process = 0

    def append(self, line: bytes) -> Path:
        """Writes a line, durably, and returns the log; if another process sealed the log meanwhile, into another.

        An OSError leaves no part of the line, where the disk lets it be cut off.
        """
        while True:
            with contextlib.suppress(FileNotFoundError):  # it was sealed, and the empty folder removed
                path = self._begun()
                self._path = None
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


def remove(path: Path, size: int) -> None:
    """Removes a log that was read up to this size, unless its writer, which looks at its name, has added more."""
    moved = path if path.name.startswith(_REMOVED) else path.with_name(_REMOVED + path.name)
    with contextlib.suppress(FileNotFoundError):
        path.rename(moved)
        if moved.stat().st_size <= size:
            moved.unlink()
