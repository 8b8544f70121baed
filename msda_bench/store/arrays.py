"""The arrays kept with records, such as predictions: npz files without pickle, each named after its bytes.

While a run lasts each is a file `arrays/<key>.<kind>-<sha256>.npz`, so that no two runs write the same; sealing moves
them into `arrays.zip`, where each is a stored member.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from msda_bench.atomic import make_folder, named, opened, read_file, write, written
from msda_bench.errors import StoreError, printable, reported

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
        if size > LIMIT:
            raise StoreError(f"{where}: has {size} bytes, more than the {LIMIT} of arrays")
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            return {field: arrays[field] for field in arrays.files}
    except (ValueError, OSError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise StoreError(f"{where}: not an npz file: {error}") from error


def name_of(key: str, kind: str, sha256: str) -> str:
    """The name of a file of arrays."""
    return f"{key}.{kind}-{sha256}.npz"


class Arrays:
    """The kept arrays of a result folder, as bytes by name."""

    def __init__(self, folder: Path) -> None:
        self._loose = folder / FOLDER
        self._path = folder / ARCHIVE
        self._members: dict[str, zipfile.ZipInfo] = {}
        self._stamp = 0, 0

    def names(self) -> set[str]:
        """All of them; raises a StoreError if they cannot be read."""
        with self._archive() as _:
            return {*self.loose(), *self._members}

    def loose(self) -> list[str]:
        """Those that are not sealed."""
        return sorted(path.name for path in self._loose.glob("[0-9a-f]*.npz"))

    def add(self, name: str, data: bytes) -> None:
        """Keeps arrays; raises a StoreError if they cannot be written."""
        with named(self._loose / name, "cannot be written, what was stored before is intact"):
            while True:
                make_folder(self._loose)
                with contextlib.suppress(FileNotFoundError):  # another process, which seals, removed the empty folder
                    return write(self._loose / name, data)

    def read(self, name: str) -> bytes | None:
        """The bytes of this name, undamaged; None where they were left out, as of a copy without large files."""
        path = self._loose / name
        data: bytes | None
        with named(path, "cannot be read"):
            try:
                data = read_file(path, LIMIT)
            except FileNotFoundError:
                path, data = self._path / printable(name), self._member(name)
        if data is not None and not name.endswith(f"-{hashlib.sha256(data).hexdigest()}.npz"):
            raise StoreError(
                f"{path}: is damaged: it does not match its sha256; remove it, and `msda-bench store merge` takes it "
                "from an intact copy of the folder"
            )
        return data

    def seal(self) -> list[str]:
        """Moves loose files into the archive; returns a line for each that is damaged, and so left out.

        A StoreError, as where it cannot be written, leaves all arrays where they were.
        """
        damaged: list[str] = []
        if not (loose := self.loose()):
            return damaged
        with named(self._path, "cannot be written, what was stored before is intact"):
            with written(self._path) as stream, zipfile.ZipFile(stream, "w") as archive:
                for name in sorted(self.names()):
                    with reported(damaged):
                        archive.writestr(zipfile.ZipInfo(name), self.read(name) or b"")
            for name in loose:
                (self._loose / name).unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                self._loose.rmdir()
        return damaged

    def _member(self, name: str) -> bytes | None:
        """The bytes of a member as they stand, so that nothing expands: a compressed one does not match its name."""
        with self._archive() as stream:
            if stream is None or name not in self._members:
                return None
            stream.seek(self._members[name].header_offset + 26)
            stream.seek(sum(struct.unpack("<HH", stream.read(4).ljust(4, b"\0"))), os.SEEK_CUR)
            return stream.read(min(self._members[name].file_size, self._stamp[1]))

    @contextlib.contextmanager
    def _archive(self) -> Iterator[BinaryIO | None]:
        """The archive as it is now, whose members are known then; None where there is none."""
        with named(self._path, "cannot be read"):
            if not os.path.lexists(self._path):
                self._members = {}
                yield None
                return
            with opened(self._path, os.O_RDONLY) as handle, open(handle, "rb", closefd=False) as stream:
                status = os.fstat(handle)
                try:
                    if self._stamp != (status.st_mtime_ns, status.st_size):
                        with zipfile.ZipFile(stream) as archive:
                            self._members = {member.filename: member for member in archive.infolist()}
                        self._stamp = status.st_mtime_ns, status.st_size
                except (zipfile.BadZipFile, ValueError) as error:
                    raise StoreError(f"{self._path}: is damaged: {error}") from error
                yield stream
