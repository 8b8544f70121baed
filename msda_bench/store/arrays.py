"""The arrays kept with records, such as predictions: npz files without pickle, whose sha256 the records name.

While a run lasts each is a file `arrays/<key>.<kind>-<first 16 digits of its sha256>.npz`, so that no two runs write
the same; sealing puts them into `arrays.zip` under these names.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import mmap
import os
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from msda_bench.atomic import make_folder, named, opened, read_file, write, written
from msda_bench.errors import StoreError, printable

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
    """The arrays of a file, by name.

    Raises:
        StoreError: it is no npz file, or too large when read.
    """
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
    return f"{key}.{kind}-{sha256[:16]}.npz"


class _Mapped(mmap.mmap):
    """A file without a handle that must be closed."""

    def seekable(self) -> bool:
        return True


class Arrays:
    """The kept arrays of a result folder, as bytes by name."""

    def __init__(self, folder: Path) -> None:
        self._loose = folder / FOLDER
        self._path = folder / ARCHIVE
        self._archive: zipfile.ZipFile | None = None
        self._made = 0

    def names(self) -> set[str]:
        """All of them; raises a StoreError if they cannot be read."""
        return {path.name for path in self.loose()} | {*self._opened().namelist()}

    def add(self, name: str, data: bytes) -> None:
        """Keeps arrays; raises a StoreError if they cannot be written."""
        with named(self._loose / name, "cannot be written, what was stored before is intact"):
            make_folder(self._loose)
            write(self._loose / name, data)

    def read(self, name: str, sha256: str) -> bytes | None:
        """The bytes of this checksum; None where they were left out, as of a copy without large files.

        Raises:
            StoreError: they cannot be read, or are damaged.
        """
        path = self._loose / name
        with named(path, "cannot be read"):
            data = read_file(path, LIMIT) if os.path.lexists(path) else self._member(name)
        if data is not None and hashlib.sha256(data).hexdigest() != sha256:
            raise StoreError(
                f"{path}: is damaged: it does not match the sha256 in its record; remove it, and `msda-bench store "
                "merge` takes it from an intact copy of the folder"
            )
        return data

    def seal(self, wanted: Mapping[str, str]) -> list[str]:
        """Moves loose files into the archive, if records want them: by name, their sha256.

        Returns:
            A line for each that is damaged, and so left out.

        Raises:
            StoreError: it cannot be written; all arrays are where they were.
        """
        loose = [path for path in self.loose() if path.name in wanted]
        damaged: list[str] = []
        if not loose:
            return damaged
        with named(self._path, "cannot be written, what was stored before is intact"):
            with written(self._path) as stream, zipfile.ZipFile(stream, "w") as archive:
                for name in sorted({path.name for path in loose} | {*self._opened().namelist()}):
                    try:
                        data = self.read(name, wanted[name]) if name in wanted else self._member(name)
                    except StoreError as error:
                        damaged.extend(error.lines)
                    else:
                        archive.writestr(zipfile.ZipInfo(name), data or b"")
            for path in loose:
                path.unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                self._loose.rmdir()
        return damaged

    def loose(self) -> list[Path]:
        """The files that are not sealed; raises a StoreError if they cannot be listed."""
        with named(self._loose, "cannot be read"):
            return sorted(self._loose.glob("[0-9a-f]*.npz")) if self._loose.is_dir() else []

    def _member(self, name: str) -> bytes | None:
        archive = self._opened()
        try:
            member = archive.getinfo(name)
            if member.compress_type != zipfile.ZIP_STORED or member.file_size > LIMIT:
                raise StoreError(f"{self._path}: {printable(name)}: is compressed, or larger than {LIMIT} bytes")
            return archive.read(member)
        except KeyError:
            return None
        except (zipfile.BadZipFile, EOFError) as error:
            raise StoreError(f"{self._path}: {printable(name)}: is damaged: {error}") from error

    def _opened(self) -> zipfile.ZipFile:
        """The archive as it is now; an empty one where there is none."""
        with named(self._path, "cannot be read"):
            made = self._path.lstat().st_mtime_ns if os.path.lexists(self._path) else 0
            if self._archive is None or self._made != made:
                self._made = made
                self._archive = zipfile.ZipFile(io.BytesIO(), "w") if not made else self._reader()
        return self._archive

    def _reader(self) -> zipfile.ZipFile:
        try:
            with opened(self._path, os.O_RDONLY) as handle:
                return zipfile.ZipFile(cast("BinaryIO", _Mapped(handle, 0, access=mmap.ACCESS_READ)))
        except (zipfile.BadZipFile, ValueError) as error:
            raise StoreError(f"{self._path}: is damaged: {error}") from error
