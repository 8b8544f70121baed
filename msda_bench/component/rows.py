"""Arrays that are made row by row, such as one of decoded images, or of their features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np


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
    rows: tuple[Row, ...] | np.ndarray[Any, np.dtype[Any]]
    shape: tuple[int, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    largest: int = 1 << 28
    dtype: Literal["uint8", "float32"] = "uint8"
    together: int | None = None
    processes: int | None = None
    doing: str = "decoding"
