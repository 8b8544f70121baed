"""Arrays that are made row by row, such as one of decoded images, or of their features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np


@dataclass(frozen=True)
class Row:
    """What one row is made from.

    Attributes:
        name: of the row, such as `photo/dog/1.jpg`; for messages. Rows in one folder are made together.
        path: the file that it is read from.
        offset: the first byte there.
        size: bytes.
        stamp: changes with the file, such as its time of modification in nanoseconds.
    """

    name: str
    path: str
    offset: int
    size: int
    stamp: int


@dataclass(frozen=True, eq=False)
class Rows:
    """How an array is made by several processes, to be kept in a file and mapped into memory.

    Attributes:
        make: `module:function`. `function(content, **options)` gets a row's bytes and returns an array of `shape` and
            `dtype`, and what had to be done to it in a few words, or None; it raises `DataError` with a few words for
            bytes that make no row. With `together` it gets a list of the bytes of several rows and returns an array
            (rows, *shape) alone; what it raises then stops the others, too.
        rows: what the rows are made from, in order: parts of files, or the rows of an array.
        shape: of each row.
        options: JSON values; they must hold all else that the rows depend on, such as the version of a decoder, and of
            an array its contents, since these are not looked at.
        largest: bytes that a row may be made from.
        dtype: of the array.
        together: how many rows `make` gets at once; it gets fewer only at the end of each part of 256 rows, whatever
            the number of processes. One row, not as a list, when None.
        processes: how many make the array at most; any number when None.
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
