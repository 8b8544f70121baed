"""Arrays that are made row by row, such as one of decoded images."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


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


@dataclass(frozen=True)
class Rows:
    """How an array of bytes is made by several processes, to be kept in a file and mapped into memory.

    Attributes:
        make: `module:function`. `function(content, **options)` gets a row's bytes and returns a uint8 array of `shape`
            and what had to be done to it in a few words, or None; it raises `DataError` with a few words for bytes that
            make no row.
        rows: what the rows are made from, in order.
        shape: of each row.
        options: JSON values; they must hold all else that the rows depend on, such as the version of a decoder.
        largest: bytes that a row may be made from.
    """

    make: str
    rows: tuple[Row, ...]
    shape: tuple[int, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    largest: int = 1 << 28
