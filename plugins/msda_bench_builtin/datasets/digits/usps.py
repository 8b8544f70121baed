"""Reads USPS as LIBSVM publishes it: bzip2 of lines `label 1:value ... 256:value`.

torchvision's `USPS` is not used: it ignores the indices, truncates values where this rounds them, and sets no size
limit.
"""

from __future__ import annotations

import bz2
from pathlib import Path

import numpy as np

from msda_bench.api import Array, DataError
from msda_bench_builtin.datasets.digits.part import CLASSES, SIDE, Part, colours, digits, enlarge
from msda_bench_builtin.datasets.unpacked import read_limited

_SIDE = 16
_MOST = 1 << 28
"""The maximum number of unpacked bytes; the larger file has about 20 million."""
_PLACES = range(1, _SIDE * _SIDE + 1)


def read_usps(path: Path) -> Part:
    """Digits of USPS, enlarged to 32 x 32; values -1..1 become 0..255, label 1 is the digit 0.

    Raises:
        DataError: the file has other contents; reports the line.
    """
    rows = [_row(line, f"{path}:{number}") for number, line in enumerate(_lines(path), 1)]
    if not rows:
        raise DataError(f"{path}: holds no images; replace the file")
    table = np.stack(rows)
    labels = digits(table[:, 0], path, 1, CLASSES) - 1
    grey = np.rint((table[:, 1:] + 1) / 2 * 255).astype(np.uint8).reshape(-1, _SIDE, _SIDE)
    return Part(colours(enlarge(grey, SIDE)), labels)


def _lines(path: Path) -> list[bytes]:
    try:
        with bz2.open(path) as stream:
            return read_limited(stream, _MOST).splitlines()
    except (EOFError, OSError, ValueError) as error:
        raise DataError(f"{path}: not a whole bzip2 file: {error}; replace the file") from None


def _row(line: bytes, where: str) -> Array:
    """(257,) float64: the label, then the values; omitted ones are 0, as in the format."""
    row = np.zeros(1 + _SIDE * _SIDE)
    try:
        numbers = np.array(line.replace(b":", b" ").split(), np.float64)
    except ValueError:
        numbers = np.empty(0)
    places, values = numbers[1::2], numbers[2::2]
    paired = len(numbers) == 1 + 2 * line.count(b":")
    if not (paired and np.isin(places, _PLACES).all() and (abs(values) <= 1).all()):
        what = "not a label and pairs `index:value`, of index 1..256 and value -1..1"
        raise DataError(f"{where}: {what}; replace the file")
    row[0], row[places.astype(np.int64)] = numbers[0], values
    return row
