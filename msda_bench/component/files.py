"""Data files that components name, and the arrays that are made from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

_LEAST, _WHOLE = 8, 64
"""Allowed numbers of digits of a sha256: those that an address may hold, and all."""


@dataclass(frozen=True)
class Row:
    """The source of one row.

    Attributes:
        name: of the row, such as `photo/dog/1.jpg`; for messages. Rows in one folder are made together.
        path: the file that it is read from.
        offset: of its first byte in the file.
        size: in bytes.
        stamp: changes with the file, such as its time of modification in nanoseconds.
    """

    name: str
    path: str
    offset: int
    size: int
    stamp: int


@dataclass(frozen=True, eq=False)
class Rows:
    """An array that several processes make, kept in a file and mapped into memory.

    Attributes:
        make: `module:function`. `function(content, **options)` gets a row's bytes and returns an array of `shape` and
            `dtype`, and a few words on any repair of the row, or None; for bytes that cannot become a row it raises
            `DataError` with a few words. With `together` it gets a list of the bytes of several rows and returns only
            an array (rows, *shape); an exception then stops the others, too.
        rows: the sources of the rows, in order: parts of files, or the rows of an array.
        shape: of each row.
        options: JSON values; they must include everything else that the rows depend on, such as the version of a
            decoder, and for an array its contents, since these are not compared.
        largest: the maximum size of a row's source in bytes.
        dtype: of the array.
        together: how many rows `make` gets at once; fewer only at the end of each part of 256 rows, whatever the number
            of processes. None for one row, not in a list.
        processes: the maximum number of processes; None for any number.
        doing: for the progress bar and messages.
    """

    make: str
    rows: tuple[Row, ...] | Array
    shape: tuple[int, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    largest: int = 1 << 28
    dtype: Literal["uint8", "float32"] = "uint8"
    together: int | None = None
    processes: int | None = None
    doing: str = "decoding"


@dataclass(frozen=True)
class Url:
    """A file served over HTTP(S), or as `file:`; the addresses are tried in order."""

    addresses: tuple[str, ...]


@dataclass(frozen=True)
class Pip:
    """A distribution that pip downloads from the user's package index, checked by hash: a wheel, or else the source.

    A file whose path ends in `.whl` is a wheel.
    """

    project: str
    version: str


@dataclass(frozen=True)
class ByHand:
    """A file that cannot be downloaded; the user puts it in place.

    Attributes:
        why: who published it, and why it cannot be downloaded, in a line.
    """

    why: str


@dataclass(frozen=True)
class File:
    """A data file, identified by its bytes, or a folder that the user supplies.

    Attributes:
        path: below a data folder, with forward slashes.
        sha256: of the whole file, in lower-case hexadecimal, or its first digits, at least 8, if no more were
            published. None if only the md5 was published; also None for a file that the user makes, which is not read
            until the suite gives its checksum. For a folder: of the lines `SHA256  PATH` of its files, by path.
        size: in bytes; None if it was not published.
        origin: the source from which `msda-bench data fetch` gets it.
        md5: checked instead of an unknown sha256.
        same: (sha256, size) of files with the same data in other bytes, such as another compression; they are used
            where they are found.
    """

    path: str
    sha256: str | None
    size: int | None
    origin: Url | Pip | ByHand
    md5: str | None = None
    same: tuple[tuple[str, int], ...] = ()

    def __post_init__(self) -> None:
        known = self.sha256 is not None or (self.md5 is not None and not isinstance(self.origin, Pip))
        if not known and not isinstance(self.origin, ByHand):
            raise ValueError(
                f"{self.path}: a file needs a sha256, or an md5 if pip does not fetch it; only one placed by hand "
                "may have neither"
            )
        least = _WHOLE if isinstance(self.origin, Pip) else _LEAST
        if self.sha256 is not None and len(self.sha256) < least:
            raise ValueError(f"{self.path}: its sha256 has {len(self.sha256)} digits; {least} are needed")

    @property
    def checksum(self) -> str | None:
        """The strongest known checksum, as `sha256 HEX` or `md5 HEX`; None if there is none."""
        if self.sha256 is not None:
            return f"sha256 {self.sha256}"
        return None if self.md5 is None else f"md5 {self.md5}"


class Files(Protocol):
    """Gives a dataset its files; the caller passes it to `load`."""

    def path(self, file: File) -> Path:
        """The checked local copy of a file; raises `DataError` if it is missing or its bytes are wrong."""
        ...

    def derived(self, name: str, make: Callable[[], Mapping[str, Array]]) -> Mapping[str, Array]:
        """Arrays that `make` makes once, cached under `name`, which must identify all that they depend on."""
        ...

    def rows(self, name: str, rows: Rows) -> Array:
        """As `derived`, for one array (n, *shape) of bytes that several processes make; it is mapped into memory.

        Raises:
            DataError: a line for each kind of fault in the rows, with their number, or the cache cannot be written.
        """
        ...
