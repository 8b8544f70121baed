"""Reads a table of the user's (CSV, TSV, Parquet) as columns of texts; a file that cannot be used is one line."""

from __future__ import annotations

import csv
import hashlib
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from msda_bench.api import Array, DataError

MISSING = frozenset({"", "?", "NA", "N/A", "NaN", "nan", "null", "NULL"})
"""Texts that stand for a missing value."""
_SEPARATORS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
_PARQUET = ".parquet"
ENDINGS = (*_SEPARATORS, _PARQUET)
"""Of the files that are tables."""
_MOST = 1 << 29
"""The maximum size of a file in bytes."""
_WIDEST = 20_000
_EXACT = 1 << 53
"""Whole numbers below it are exact in float64."""
_CELLS = 1 << 27
"""The maximum number of values in a Parquet file, where equal ones take next to no bytes."""
_DAMAGE = (OSError, ValueError, TypeError, LookupError, NotImplementedError, OverflowError, MemoryError)
"""Exceptions of pyarrow for files that are damaged, encrypted, or hold what it cannot read."""
_FOREIGN = {
    b"PK\x03\x04": "is a zip archive; unpack it",
    b"\x1f\x8b": "is compressed (gzip); unpack it",
    b"BZh": "is compressed (bzip2); unpack it",
    b"\xfd7zXZ": "is compressed (xz); unpack it",
    b"PAR1": "is a Parquet file; name it .parquet",
    b"\x93NUMPY": "is an array of numpy; read it as `arrays`, from an npz archive",
    b"\x80\x02": "is a pickle, which is never read; write a CSV file",
    b"\x80\x03": "is a pickle, which is never read; write a CSV file",
    b"\x80\x04": "is a pickle, which is never read; write a CSV file",
    b"\x80\x05": "is a pickle, which is never read; write a CSV file",
}
_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*")
_COMMA = re.compile(r"\s*[+-]?\d+,\d+\s*")
_INFINITE = re.compile(r"\s*[+-]?(inf|infinity)\s*", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class Column:
    """A column of n rows.

    Attributes:
        texts: its different values, without missing ones.
        codes: (n,) int64: each row's place in `texts`, -1 where it is missing.
    """

    texts: tuple[str, ...]
    codes: Array

    def numbers(self) -> Array:
        """Its texts as numbers, float64, NaN for other texts; infinities are infinite."""
        return np.array([_number(text) for text in self.texts], np.float64)

    def has_commas(self) -> bool:
        """Whether most of its texts are numbers with a decimal comma."""
        return 2 * sum(map(bool, map(_COMMA.fullmatch, self.texts))) > len(self.texts)

    def merged(self) -> Column:
        """The column with one text for equal numbers, such as 1 and 1.0, if all its texts are numbers below 2**53.

        From there on float64 does not tell neighbours apart, and such numbers are identifiers: they stay as they are.
        """
        numbers = self.numbers()
        if not (np.abs(numbers) < _EXACT).all():
            return self
        values, places = np.unique(numbers, return_inverse=True)
        texts = tuple(_plain_number(value) for value in values.tolist())
        return Column(texts, np.append(places.reshape(-1), -1)[self.codes])

    def row_of(self, text: int) -> int:
        """The first row with a text, counted from 1 below the header."""
        return int(np.argmax(self.codes == text)) + 1

    @classmethod
    def of(cls, texts: Sequence[str], codes: Array) -> Column:
        """The column; texts that mean a missing value become -1, and texts without a row are left out."""
        used = np.zeros(len(texts), bool)
        used[codes[codes >= 0]] = True
        kept = [place for place, text in enumerate(texts) if used[place] and text.strip() not in MISSING]
        places = np.full(len(texts) + 1, -1, np.int64)  # the last one for -1
        places[kept] = np.arange(len(kept))
        return cls(tuple(texts[place] for place in kept), places[codes])


def _plain_number(value: float) -> str:
    return str(int(value)) if value.is_integer() else str(value)


def _number(text: str) -> float:
    return float(text) if _NUMBER.fullmatch(text) or _INFINITE.fullmatch(text) else np.nan


def stamp(path: Path) -> tuple[int, int, int]:
    """Changes with a file: its size, time and place on the disk.

    Raises:
        DataError: there is no such file, it is none, empty or too large.
    """
    try:
        state, is_file = path.stat(), path.is_file()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise DataError(f"{path}: cannot be read: {why}; correct `file` in the suite") from None
    if not is_file:
        raise DataError(f"{path}: is {'a folder' if path.is_dir() else 'no regular file'}; name a file")
    if not state.st_size:
        raise DataError(f"{path}: is empty")
    return state.st_size, state.st_mtime_ns, state.st_ino


def read_table(path: Path) -> tuple[str, dict[str, Column]]:
    """The sha256 of a table's bytes, and its columns by name.

    Raises:
        DataError: it is no such file, or damaged.
    """
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise DataError(f"{path}: a table is a .csv, .tsv or .parquet file, not {ending or 'without an ending'}")
    if stamp(path)[0] > _MOST:
        raise DataError(f"{path}: is larger than {_MOST} bytes; save the columns that matter as `arrays`")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None
    columns = _parquet(path, content) if ending == _PARQUET else _delimited(path, content, _SEPARATORS[ending])
    return hashlib.sha256(content).hexdigest(), columns


def delimited(path: Path, text: str, separator: str = ",", names: Sequence[str] = ()) -> dict[str, Column]:
    """The columns of text in lines; the first line has their names unless they are given.

    Raises:
        DataError: lines differ in their number of fields, quotes do not end, or names repeat.
    """
    import pandas as pd

    header = list(names) or _header(path, text, separator)
    rows = _rows(path, text, separator, len(header))
    if rows <= (not names):
        raise DataError(f"{path}: has no rows below its header")
    try:
        frame = pd.read_csv(
            io.StringIO(text), sep=separator, header=None, skiprows=0 if names else 1, names=range(len(header)),
            dtype=str, keep_default_na=False, index_col=False,
        )  # fmt: skip
    except (pd.errors.ParserError, pd.errors.EmptyDataError, ValueError) as error:
        raise DataError(f"{path}: cannot be read: {plain(error)}") from None
    return {name: _categories(frame[place]) for place, name in enumerate(header)}


def _delimited(path: Path, content: bytes, separator: str) -> dict[str, Column]:
    for magic, what in _FOREIGN.items():
        if content.startswith(magic):
            raise DataError(f"{path}: {what}")
    if content.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in content[:4096]:
        raise DataError(f"{path}: is no text in UTF-8 (it has zero bytes; UTF-16?); save it as UTF-8")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise DataError(f"{path}: line {line} is no UTF-8 text; save the file as UTF-8") from None
    if "\0" in text:
        raise DataError(f"{path}: line {text[: text.index(chr(0))].count(chr(10)) + 1} has a zero byte; remove it")
    return delimited(path, text, separator)


def _header(path: Path, text: str, separator: str) -> list[str]:
    try:
        header = [name.strip() for name in next(csv.reader(io.StringIO(text, newline=""), delimiter=separator), [])]
    except csv.Error as error:
        raise DataError(f"{path}: its first line cannot be read: {error}") from None
    _check_names(path, header)
    return header


def _check_names(path: Path, names: Sequence[str]) -> None:
    if len(names) > _WIDEST:
        raise DataError(f"{path}: has {len(names)} columns, more than {_WIDEST}; save them as `arrays`")
    twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if twice and twice != [""]:
        raise DataError(f"{path}: two columns are called {twice[-1]!r}; rename one")
    if "" in names:
        raise DataError(f"{path}: column {names.index('') + 1} has no name; the first line names the columns")


def _rows(path: Path, text: str, separator: str, width: int) -> int:
    """The number of lines with fields; all have as many."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    rows = 0
    try:
        for row in reader:
            if row and len(row) != width:
                what = f"line {reader.line_num} has {len(row)} fields, but there are {width} columns"
                raise DataError(f"{path}: {what}; correct the line, or the quotes before it")
            rows += bool(row)
    except csv.Error as error:
        raise DataError(f"{path}: line {reader.line_num} cannot be read: {error}") from None
    return rows


def _parquet(path: Path, content: bytes) -> dict[str, Column]:
    try:
        import pyarrow as pa
        from pyarrow import parquet, types
    except ImportError:
        remedy = "pip install 'msda-bench[parquet]', or save the table as CSV"
        raise DataError(f"{path}: Parquet files need pyarrow: {remedy}") from None
    try:
        schema = parquet.read_schema(pa.BufferReader(content))
        names = [str(name) for name in schema.names]
        _check_names(path, names)
        kinds = dict(zip(names, schema.types, strict=True))
        for name, kind in kinds.items():
            if types.is_nested(kind):
                raise DataError(
                    f"{path}: column {name!r} holds {kind}, not one value in each row; leave it out of the file, or "
                    "save such rows of numbers as an npz file for `arrays` (docs/datasets.md)"
                )
        # Texts stay as they are encoded: one that repeats may take no bytes, but a copy for each row all memory.
        texts = [name for name, kind in kinds.items() if types.is_string(kind) or types.is_large_string(kind)]
        file = parquet.ParquetFile(pa.BufferReader(content), read_dictionary=texts)
        _check_unpacked(path, file.metadata)
        # A thread of pyarrow that lets go of `content` while Python ends aborts the process.
        table = file.read(use_threads=False)
        return {name: _arrow_column(path, name, table.column(place)) for place, name in enumerate(names)}
    except (*_DAMAGE, pa.ArrowException) as error:
        raise DataError(f"{path}: is no readable Parquet file: {plain(error)}") from None


def _check_unpacked(path: Path, metadata: Any) -> None:
    size = sum(metadata.row_group(group).total_byte_size for group in range(metadata.num_row_groups))
    if size > _MOST or metadata.num_rows * metadata.num_columns > _CELLS:
        what = f"unpacks to {size} bytes, {metadata.num_rows} rows of {metadata.num_columns} columns"
        raise DataError(f"{path}: {what}, more than {_MOST} bytes or {_CELLS} values; save them as `arrays`")
    if not metadata.num_rows:
        raise DataError(f"{path}: has no rows")


def _arrow_column(path: Path, name: str, values: Any) -> Column:
    import pyarrow as pa
    from pyarrow import types

    if types.is_float16(values.type):  # which cannot be encoded
        values = values.cast(pa.float32())
    held = values.combine_chunks() if types.is_dictionary(values.type) else values.combine_chunks().dictionary_encode()
    codes = held.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    try:
        texts = ["" if value is None else text_of(value) for value in held.dictionary.to_pylist()]
    except UnicodeDecodeError:
        raise DataError(
            f"{path}: column {name!r} holds bytes that are no UTF-8 text; save texts, or leave it out of the file"
        ) from None
    return Column.of(texts, codes)


def _categories(values: Any) -> Column:
    kept = values.astype("category")
    texts = [text_of(value) for value in kept.cat.categories.tolist()]
    return Column.of(texts, kept.cat.codes.to_numpy().astype(np.int64))


def text_of(value: object) -> str:
    """A plain value as a text file has it; a UnicodeDecodeError for bytes that are no text."""
    if isinstance(value, bytes):
        return value.decode()
    return _plain_number(value) if isinstance(value, float) else str(value)


def plain(error: Exception) -> str:
    """An error's text in one line, or its kind."""
    return " ".join(str(error).split()) or type(error).__name__


def column(path: Path, columns: Mapping[str, Column], name: str, what: str) -> Column:
    """A column by name; a DataError that names those that are there."""
    if name not in columns:
        import difflib

        near = difflib.get_close_matches(name, columns, 1)
        held = f"did you mean {near[0]!r}?" if near else f"it has {listed(columns)}"
        raise DataError(f"{path}: no column {name!r} for `{what}`; {held}")
    return columns[name]


def listed(names: Sequence[str] | Mapping[str, Any], most: int = 12) -> str:
    """Names in one line; of many the first ones."""
    every = list(names)
    shown = ", ".join(every[:most])
    return shown if len(every) <= most else f"{shown}, ... ({len(every)} in all)"
