"""Reads bags of words in the svmlight format: lines `label index:count index:count ...`, all whole numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from msda_bench.api import Array, DataError

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_DIGITS = 9
"""The number of digits that always fits an int32."""
_PAIR = re.compile(rb"\d{1,9}:\d{1,9}")
_SPACE, _COLON, _END, _PLUS, _MINUS, _ZERO, _NINE = b" :\n+-09"


def read_svmlight(path: Path, columns: int) -> tuple[csr_matrix, Array]:
    """Counts and labels of a file.

    Args:
        path: the file; indices are 0-based and rise along a line.
        columns: the width d.

    Returns:
        CSR (n, d) float32 with sorted int32 indices, and (n,) int64 labels, each -1 or 1.

    Raises:
        DataError: the file has other contents; reports the line.
    """
    from scipy.sparse import csr_matrix

    content = path.read_bytes().replace(b" \n", b"\n")  # a line without words may end with a space after its label
    if not content.endswith(b"\n"):
        raise DataError(f"{path}: empty or truncated: it does not end with a complete line; fetch it again")
    lines = _lines(np.frombuffer(content, np.uint8))
    if lines is None or _wrong(lines, columns):
        raise DataError(f"{path}:{_explain(content, columns)}; fetch the file again")
    shape = (len(lines.labels), columns)
    return csr_matrix((lines.counts.astype(np.float32), lines.indices, lines.starts), shape=shape), lines.labels


@dataclass(frozen=True, eq=False)
class _Lines:
    """Labels (n,), starts (n + 1,) of the lines' entries, and all indices and counts."""

    labels: Array
    starts: Array
    indices: Array
    counts: Array


def _lines(text: Array) -> _Lines | None:
    """Parses the text with whole-array operations; None if it is not in the format."""
    is_sign = (text == _PLUS) | (text == _MINUS)
    is_digit = (text >= _ZERO) & (text <= _NINE)
    ends = np.flatnonzero(~is_sign & ~is_digit)  # each number ends at a space, a colon or a line's end
    starts = np.concatenate([[0], ends[:-1] + 1])
    signed = is_sign[starts]
    kinds = text[ends]
    first = np.concatenate([[True], kinds[:-1] == _END])  # first in its line, so a label
    digits = ends - starts - signed
    if (
        is_sign.sum() != signed.sum()
        or (signed & ~first).any()
        or digits.min() < 1
        or digits.max() > _DIGITS
        or (digits[first] != 1).any()
        or not np.isin(kinds, (_SPACE, _COLON, _END)).all()
        or ((kinds[:-1] == _SPACE) != (kinds[1:] == _COLON)).any()
        or kinds[0] == _COLON
    ):
        return None
    numbers = _numbers(text, ends, digits)
    labels = np.where(text[starts[first]] == _MINUS, -numbers[first], numbers[first]).astype(np.int64)
    pairs = np.diff(np.append(np.flatnonzero(first), len(ends))) // 2
    rest = numbers[~first]
    return _Lines(labels, np.concatenate([[0], np.cumsum(pairs)]), rest[0::2], rest[1::2])


def _numbers(text: Array, ends: Array, digits: Array) -> Array:
    """The numbers, int32, that end before `ends` and have these numbers of digits."""
    values = np.zeros(len(ends), np.int32)
    live = np.arange(len(ends))
    for place in range(int(digits.max())):
        live = live[digits[live] > place]
        values[live] += (text[ends[live] - 1 - place].astype(np.int32) - _ZERO) * 10**place
    return values


def _wrong(lines: _Lines, columns: int) -> bool:
    """Whether a label or an index is out of bounds."""
    falls = np.diff(lines.indices, prepend=-1) <= 0
    falls[lines.starts[:-1][np.diff(lines.starts) > 0]] = False  # a line's first index has no predecessor
    return bool(falls.any() or (lines.indices >= columns).any() or (abs(lines.labels) != 1).any())


def _explain(content: bytes, columns: int) -> str:
    """Reads line by line, slowly, to find the first mistake and its place."""
    for number, line in enumerate(content.split(b"\n")[:-1], 1):
        mistake = _mistake(line, columns)
        if mistake:
            return f"{number}: {mistake}"
    raise AssertionError("the two readers disagree")


def _mistake(line: bytes, columns: int) -> str | None:
    label, *pairs = line.split(b" ")
    if label not in {b"1", b"+1", b"-1"}:
        return f"label {_shown(label)} is neither 1 nor -1"
    last = -1
    for pair in pairs:
        if not _PAIR.fullmatch(pair):
            return f"{_shown(pair)} is not `index:count` in whole numbers"
        index = int(pair.split(b":")[0])
        if index >= columns:
            return f"index {index} is not below {columns}"
        if index <= last:
            return f"index {index} does not rise after {last}"
        last = index
    return None


def _shown(token: bytes) -> str:
    return repr(token[:30].decode("ascii", "replace"))
