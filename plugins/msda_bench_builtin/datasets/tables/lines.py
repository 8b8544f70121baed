"""Reads delimited text as the names of its columns and its rows, and refuses lines that are neither."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path

from msda_bench.api import DataError
from msda_bench.functional import MISSING_TEXTS

NUMBER = re.compile(r"\s*[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf|infinity)\s*", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d]|%")
_SEPARATORS = ",;\t|"
_SHOWN = 60
"""Characters of a line that a message shows."""
_MOST_HEADERS = 3
"""So many rows without any number below the names may say something of the columns, such as their units."""
_FOREIGN = {
    b"PK\x03\x04": "is a zip archive; unpack it",
    b"\x1f\x8b": "is compressed (gzip); name it .csv.gz",
    b"BZh": "is compressed (bzip2); unpack it",
    b"\xfd7zXZ": "is compressed (xz); unpack it",
    b"PAR1": "is a Parquet file; name it .parquet",
    b"\x93NUMPY": "is an array of numpy; read it as `arrays`, from an npz archive",
    **{b"\x80" + bytes([kind]): "is a pickle, which is never read; write a CSV file" for kind in range(2, 6)},
}
"""The first bytes of files that are often named as tables."""


def decoded(path: Path, content: bytes) -> tuple[str, str]:
    """The text of a file, and what separates its fields.

    Raises:
        DataError: it is of another format, no Unicode text, or begins with a comment.
    """
    for magic, what in _FOREIGN.items():
        if content.startswith(magic):
            raise DataError(f"{path}: {what}")
    wide = content.startswith((b"\xff\xfe", b"\xfe\xff"))
    try:
        text = content.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        remedy = "save the file as UTF-8 (Excel: CSV UTF-8; or `iconv -f WINDOWS-1252 -t UTF-8`)"
        raise DataError(f"{path}: line {line} is no UTF-8 text; {remedy}") from None
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        raise DataError(f"{path}: line {line} has a zero byte, which no UTF-8 text has; save the file as UTF-8")
    order = _SEPARATORS if path.suffix == ".csv" else f"\t,{_SEPARATORS}"
    said = re.match(r"sep=(.)\r?\n?", text)  # for Excel
    if said:
        text = text[said.end() :]
        order = said[1] + order
    head = next(iter(text.splitlines()), "")
    separator = max(order, key=re.sub(r'"[^"]*"', "", head).count)
    if head.startswith("#") and separator not in head:
        raise DataError(f"{path}: begins with a comment, {head[:_SHOWN]!r}; remove the lines above the columns' names")
    return text, separator


def rows_of(path: Path, text: str, separator: str) -> tuple[list[str], list[list[str]]]:
    """The names in the first line, and the rows below it; lines without any value are left out.

    Raises:
        DataError: lines differ in their number of fields, quotes do not end, or a line is no row.
    """
    lines = _Lines(text)
    reader = csv.reader(lines, delimiter=separator, strict=True)
    rows: list[list[str]] = []
    try:
        header = [name.strip() for name in next(reader, ())]
        for row in reader:
            if len(row) == len(header) + 1 and not row[-1]:
                row.pop()  # a separator after the last field
            elif len(row) == len(header) + 1 and not rows:
                header.insert(0, "")  # R gives the column of names of rows no name
            if row and len(row) != len(header):
                what = f"line {reader.line_num} has {len(row)} fields, but there are {len(header)} columns"
                raise DataError(f"{path}: {what}: {separator.join(row)[:_SHOWN]!r}; {lines.remedy()}")
            _refuse_names(path, header, row, reader.line_num)
            if any(row):
                rows.append(row)
    except csv.Error as error:
        raise DataError(f"{path}: line {reader.line_num} cannot be read: {error}") from None
    if not rows:
        raise DataError(f"{path}: has no rows below its header")
    _refuse_units(path, header, rows)
    return header, rows


class _Lines:
    """The lines of a text, with the ends that they have."""

    def __init__(self, text: str) -> None:
        self._mixed = "\n" in text.replace("\r\n", "\n") and "\r" in text
        self._lines = iter(io.StringIO(text, newline=""))
        self._last = ("", "")

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self._last = (self._last[1], line)
        return line

    def remedy(self) -> str:
        """What to do about the last line, which has too few or too many fields."""
        if self._mixed and any(line.endswith("\r") for line in self._last):
            return "a carriage return alone ends a line here: remove it, or put the value into quotes"
        return "correct the line, or the quotes before it"


def _refuse_names(path: Path, header: Sequence[str], row: Sequence[str], line: int) -> None:
    """Refuses a line of the same names, which files have that were joined without a look at their first lines."""
    if not row or len(header) == 1 or row[-1].strip() != header[-1]:
        return
    if [value.strip("\ufeff \t") for value in row] == [*header]:
        what = f"line {line} repeats the names of the columns, as `cat a.csv b.csv` does"
        raise DataError(f"{path}: {what}; remove each such line, or name the folder of the single files")


def _refuse_units(path: Path, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Refuses first rows of texts alone where columns hold numbers in all other rows."""
    heads = [*takewhile(lambda row: not any(map(_is_number, row)), rows[: _MOST_HEADERS + 1])]
    if not heads or len(heads) > _MOST_HEADERS or len(heads) == len(rows):
        return
    said: list[str] = []
    others = 0
    for name, *values in zip(header, *rows, strict=True):
        rest = {*values[len(heads) :]} - {"", *MISSING_TEXTS}
        texts = [text for text in values[: len(heads)] if _WORD.search(text) and text not in MISSING_TEXTS]
        if texts and rest and all(map(_is_number, rest)):
            said.append(f"{name!r} {texts[0][:_SHOWN]!r}")
        else:
            others += bool(texts)
    if len(said) > 1 or (said and not others):
        which = "row 1 has" if len(heads) == 1 else f"rows 1 to {len(heads)} have"
        what = f"{which} texts where all other rows have numbers ({', '.join(said[:3])}), such as units"
        raise DataError(f"{path}: {what}; remove what is between the names and the first row")


def _is_number(text: str) -> bool:
    return NUMBER.fullmatch(text.replace(",", ".")) is not None
