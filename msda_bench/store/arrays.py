"""The arrays kept with records, such as predictions: npz files without pickle, each named after its bytes.

While a run lasts each is a file `arrays/<key>.<kind>-<sha256>.npz`, so that no two runs write the same; sealing moves
them into `arrays.zip`, where each is a stored member.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import io
import os
import struct
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from msda_bench.atomic import (
    NOT_THERE,
    keep_aside,
    make_folder,
    named,
    opened,
    read_file,
    refuse_other,
    stamp,
    write,
    written,
)
from msda_bench.errors import StoreError, message_of, printable
from msda_bench.store.joined import members_of

KINDS = ("predictions", "weights")
FOLDER = "arrays"
ARCHIVE = "arrays.zip"
LIMIT = 1 << 34
"""The maximum size of arrays in bytes, as a file and as read."""


def pack(arrays: Mapping[str, NDArray[np.generic]]) -> bytes:
    """The file of some arrays by name."""
    stream = io.BytesIO()
    np.savez_compressed(stream, allow_pickle=False, **arrays)
    return stream.getvalue()


def unpack(data: bytes, where: str) -> dict[str, NDArray[np.generic]]:
    """The arrays of a file, by name; a StoreError if it is no npz file, or too large when read."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            size = sum(member.file_size for member in archive.infolist())
        if size <= LIMIT:
            with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
                return {field: arrays[field] for field in arrays.files}
    except Exception as error:  # zipfile and numpy raise anything where the bytes make no sense
        raise StoreError(f"{where}: not an npz file: {message_of(error)}") from error
    raise StoreError(f"{where}: has {size} bytes, more than the {LIMIT} of arrays")


def name_of(key: str, kind: str, sha256: str) -> str:
    """The name of a file of arrays."""
    return f"{key}.{kind}-{sha256}.npz"


class Arrays:
    """The kept arrays of a result folder, as bytes by name."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._loose = folder / FOLDER
        self._path = folder / ARCHIVE
        self._members: dict[str, list[zipfile.ZipInfo]] = {}
        self._unread = ""
        self._stamp = NOT_THERE

    def names(self) -> set[str]:
        """The names of all arrays; a StoreError if some cannot be read."""
        self.refuse_unread()
        return {*self.loose(), *self._members}

    def loose(self) -> list[str]:
        """The names of arrays that are not in the archive yet."""
        return sorted(path.name for path in self._loose.glob("[0-9a-f]*.npz"))

    def add(self, name: str, data: bytes) -> None:
        """Keeps arrays; raises a StoreError if they cannot be written."""
        with named(self._loose / name, "cannot be written, what was stored before is intact"):
            while True:
                make_folder(self._loose)
                with contextlib.suppress(FileNotFoundError):  # another process, which seals, removed the empty folder
                    return write(self._loose / name, data)

    def read(self, name: str) -> bytes | None:
        """The bytes of this name, undamaged; None where they were left out, as of a copy without large files.

        They may be in a part of the archive that cannot be read; `refuse_unread` tells.
        """
        damaged: Path | None = None
        for path, data in self._copies(name):
            if name.endswith(f"-{hashlib.sha256(data).hexdigest()}.npz"):
                return data
            damaged = path
        if damaged is not None:
            raise StoreError(
                f"{damaged}: is damaged: it does not match its sha256; remove it, and `msda-bench store merge` takes "
                "it from an intact copy of the folder"
            )
        return None

    def compact(self) -> list[str]:
        """Moves loose files into the archive; returns a line for each that is damaged, and so left out.

        A StoreError, as where it cannot be written, leaves all arrays where they were.
        """
        damaged: list[str] = []
        asides: set[Path] = set()
        loose = self.loose()
        if not loose:
            return damaged
        with named(self._path, "cannot be written, what was stored before is intact"):
            names = sorted(self.names())
            check = functools.partial(refuse_other, self._path, self._stamp)
            with written(self._path, check) as stream, zipfile.ZipFile(stream, "w") as archive:
                for name in names:
                    try:
                        archive.writestr(zipfile.ZipInfo(name), self._there(name))
                    except StoreError as error:
                        damaged += error.lines
                        asides.add(self._loose / name if name in loose else self._path)
                damaged += (keep_aside(path, self._folder) for path in sorted(asides))
            for name in loose:
                (self._loose / name).unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                self._loose.rmdir()
        return damaged

    def _there(self, name: str) -> bytes:
        """The bytes of a name that was listed."""
        data = self.read(name)
        if data is None:
            raise StoreError(f"{self._path}: {name} is gone since it was listed")
        return data

    def _copies(self, name: str) -> Iterator[tuple[Path, bytes]]:
        """The bytes that stand under this name, and their place, damaged or not."""
        path = self._loose / name
        with named(path, "cannot be read"), contextlib.suppress(FileNotFoundError):
            yield path, read_file(path, LIMIT)
        with self._archive() as stream:
            if stream is None:
                return
            for member in self._members.get(name, ()):
                yield self._path / printable(name), self._stands(member, stream)

    def _stands(self, member: zipfile.ZipInfo, stream: BinaryIO) -> bytes:
        """The bytes of a member as they stand, so that nothing expands: a compressed one does not match its name."""
        stream.seek(member.header_offset + 26)
        lengths = stream.read(4).ljust(4, b"\0")  # of the name and of extra fields, which come before the bytes
        stream.seek(sum(struct.unpack("<HH", lengths)), os.SEEK_CUR)
        _, size, _ = self._stamp
        return stream.read(min(member.file_size, size))

    @contextlib.contextmanager
    def _archive(self) -> Iterator[BinaryIO | None]:
        """The archive as it is now, whose members are known then; None where there is none."""
        with named(self._path, "cannot be read"):
            now = stamp(self._path)
            if now == NOT_THERE:
                self._stamp, self._members, self._unread = now, {}, ""
                yield None
                return
            with opened(self._path, os.O_RDONLY) as handle, open(handle, "rb", closefd=False) as stream:
                if self._stamp != now:
                    self._members, self._unread = members_of(stream)
                    self._stamp = now
                yield stream

    def refuse_unread(self) -> None:
        """Raises a StoreError if a part of the archive cannot be read."""
        with self._archive() as _:
            unread = self._unread
        if unread:
            remedy = "move it away, and `msda-bench store merge` takes its arrays from an intact copy of the folder"
            raise StoreError(f"{self._path}: is damaged: {unread}; {remedy}")
