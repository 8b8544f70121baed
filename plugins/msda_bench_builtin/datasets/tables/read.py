"""Reads tables of the user's (CSV, TSV, Parquet, or a folder of them) as columns of texts."""

from __future__ import annotations

import csv
import functools
import gzip
import hashlib
import io
import re
import zlib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from msda_bench.api import Array, DataError
from msda_bench.functional import MISSING_TEXTS, plain_texts

_ENDINGS = (".csv", ".tsv", ".tab", ".parquet", ".csv.gz", ".tsv.gz")
_WORKBOOKS = (".xlsx", ".xls", ".xlsm", ".xlsb", ".ods")
_SEPARATORS = ",;\t|"
NO_NAME = ("Unnamed: ", "__index_level_")
"""Begin names of columns without one, as pandas calls them, such as the index of a data frame."""
_MOST = 1 << 29
"""The maximum size of a file in bytes."""
_WIDEST = 1 << 17
_CELLS = 1 << 27
"""The maximum number of values in a Parquet file, where equal ones take next to no bytes."""
_SHOWN = 60
"""Characters of a line that a message shows."""
_DAMAGE = (OSError, ValueError, TypeError, LookupError, NotImplementedError, OverflowError, MemoryError)
"""Exceptions of pyarrow for files that are damaged, encrypted, or hold what it cannot read."""
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
_NUMBER = re.compile(r"\s*[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf|infinity)\s*", re.IGNORECASE)
_COMMA = re.compile(r"\s*([+-]?(?:\d+|\d{1,3}(?:\.\d{3})+)),(\d+([eE][+-]?\d+)?)\s*")
_DOTS = re.compile(r"\s*[+-]?\d{1,3}(\.\d{3})+(,\d+)?\s*")
"""Numbers with a comma as their point, and with dots between thousands."""


@dataclass(frozen=True, eq=False)
class Column:
    """A column of n rows.

    Attributes:
        texts: its different values, without missing ones.
        codes: (n,) int64: each row's place in `texts`, -1 where it is missing.
        missing: texts that stand for a missing value besides the empty one.
        gaps: those of them that occur.
        unread: rows that are not read, which are as one of the others.
    """

    texts: tuple[str, ...]
    codes: Array
    missing: Collection[str] = MISSING_TEXTS
    gaps: frozenset[str] = field(default_factory=frozenset)
    unread: int = 0

    @functools.cached_property
    def numbers(self) -> Array:
        """Its texts as numbers, float64, NaN for other texts; infinities are infinite."""
        return np.array([float(text) if _NUMBER.fullmatch(text) else np.nan for text in self.texts], np.float64)

    @functools.cached_property
    def named(self) -> Column:
        """The column with one text for those that mean the same; see `plain_texts`."""
        return Column.of(plain_texts(self.texts, self.missing), self.codes, self.missing, self.gaps)

    def only(self, rows: Array) -> Column:
        """The column as if all other rows, which are not read, were like the first of these."""
        codes = np.full(len(self.codes), self.codes[rows[0]])
        codes[rows] = self.codes[rows]
        return replace(Column.of(self.texts, codes, self.missing, self.gaps), unread=len(codes) - len(rows))

    def row_of(self, text: int) -> int:
        """The first row with a text, counted from 1 below the header."""
        return int(np.argmax(self.codes == text)) + 1

    @classmethod
    def of(
        cls,
        texts: Sequence[str],
        codes: Array,
        missing: Collection[str] = MISSING_TEXTS,
        gaps: Collection[str] = (),
    ) -> Column:
        """The column of texts that may repeat; missing ones become -1, and those without a row are left out."""
        import pandas as pd

        used = np.bincount(codes + 1, minlength=len(texts) + 1)[1:] > 0
        none = {"", *missing}
        lacking = np.fromiter((text.strip() in none for text in texts), bool, len(texts))
        kept = np.array(texts, object)
        blanks = {text.strip() for text in kept[used & lacking]} - {""}
        kept[~used | lacking] = None
        places, different = pd.factorize(kept)
        return cls(tuple(different), np.append(places, -1)[codes], missing, frozenset({*gaps, *blanks}))


def is_table(path: Path) -> bool:
    """Whether a file's name is that of a table, or a folder has one.

    Raises:
        DataError: it is a workbook, or such a folder cannot be read.
    """
    if path.name.lower().endswith(_WORKBOOKS):
        raise DataError(f"{path}: is a workbook; save the sheet with the rows as CSV (UTF-8)")
    return files_of(path) != [path] if path.is_dir() else path.name.lower().endswith(_ENDINGS)


def files_of(path: Path) -> list[Path]:
    """The tables in a folder by name; otherwise the path itself.

    Raises:
        DataError: the folder cannot be read.
    """
    try:
        held = path.iterdir() if path.is_dir() else ()
        return sorted(file for file in held if file.is_file() and file.name[0] != "." and is_table(file)) or [path]
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None


def stamp(path: Path) -> tuple[int, ...]:
    """Changes with a file: its size, time and place on the disk; of a folder those of its tables.

    Raises:
        DataError: there is no such file, it is none, empty or too large; or a folder has no table.
    """
    try:
        files = files_of(path)
        states = [(file.is_file(), file.stat()) for file in files]
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise DataError(f"{path}: cannot be read: {why}; correct `file` in the suite") from None
    for file, (is_file, state) in zip(files, states, strict=True):
        if not is_file:
            what = "a folder without a table" if file.is_dir() else "no regular file"
            raise DataError(f"{file}: is {what}; name a file")
        if not state.st_size:
            raise DataError(f"{file}: is empty")
    return tuple(number for _, state in states for number in (state.st_size, state.st_mtime_ns, state.st_ino))


@functools.lru_cache(maxsize=1)
def read_table(path: Path, missing: tuple[str, ...], domain: str, _: tuple[int, ...]) -> tuple[str, dict[str, Column]]:
    """The sha256 of a table's bytes, and its columns by name; read once by all that look through it before it is used.

    Args:
        path: a file; or a folder, whose tables are read as one.
        missing: texts that stand for a missing value besides the empty one.
        domain: the column that holds the names of a folder's files, without their endings, if they have none so called.
        _: the `stamp` of the path.

    Raises:
        DataError: it is no such file, or damaged; or the files of a folder have other columns.
    """
    files = files_of(path)
    made = [_read(file, missing) for file in files]
    if not path.is_dir():
        return made[0]
    first, digest = set(made[0][1]), hashlib.sha256()
    for file, (sha256, columns) in zip(files, made, strict=True):
        digest.update(f"{sha256}  {file.name}\n".encode())
        if other := sorted(first ^ columns.keys()):
            where = files[0] if other[0] in columns else file
            what = f"{where}: has no column {other[0]!r}, which another file of the folder has"
            raise DataError(f"{what}; give it one, empty if need be")
        if domain not in first:
            name = Path(file.name.removesuffix(".gz")).stem
            columns[domain] = Column((name,), np.zeros(len(next(iter(columns.values())).codes), np.int64), missing)
    tables = [columns for _, columns in made]
    return digest.hexdigest(), {name: _joined([columns[name] for columns in tables]) for name in tables[0]}


def _joined(parts: Sequence[Column]) -> Column:
    starts = np.cumsum([0, *(len(part.texts) for part in parts)])
    codes = [np.where(part.codes < 0, -1, part.codes + start) for part, start in zip(parts, starts[:-1], strict=True)]
    texts = [text for part in parts for text in part.texts]
    return Column.of(texts, np.concatenate(codes), parts[0].missing, frozenset().union(*(part.gaps for part in parts)))


def _read(path: Path, missing: Collection[str]) -> tuple[str, dict[str, Column]]:
    if not is_table(path):
        ending = path.suffix.lower()
        raise DataError(f"{path}: a table is a .csv, .tsv or .parquet file, not {ending or 'without an ending'}")
    try:
        packed = path.name.lower().endswith(".gz")
        with (gzip.open if packed else Path.open)(path, "rb") as stream:
            content: bytes = stream.read(_MOST + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if len(content) > _MOST:
        raise DataError(f"{path}: is larger than {_MOST} bytes; save the columns that matter as `arrays`")
    read = _parquet if path.suffix.lower() == ".parquet" else _delimited
    return hashlib.sha256(content).hexdigest(), read(path, content, missing)


def _delimited(path: Path, content: bytes, missing: Collection[str]) -> dict[str, Column]:
    if what := next((what for magic, what in _FOREIGN.items() if content.startswith(magic)), None):
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
    said = re.match(r"sep=(.)\r?\n?", text)  # for Excel
    text = text[said.end() :] if said else text
    head = next(iter(text.splitlines()), "")
    order = (said[1] if said else "") + ("\t," if path.suffixes[-1:] != [".csv"] else "") + _SEPARATORS
    separator = max(order, key=re.sub(r'"[^"]*"', "", head).count)
    if head.startswith("#") and separator not in head:
        raise DataError(f"{path}: begins with a comment, {head[:_SHOWN]!r}; remove the lines above the columns' names")
    return delimited(path, text, separator, missing)


def delimited(
    path: Path, text: str, separator: str = ",", missing: Collection[str] = MISSING_TEXTS
) -> dict[str, Column]:
    """The columns of text in lines; the first line has their names.

    Lines without any value are left out. Where semicolons separate, a comma in a number is its point.

    Raises:
        DataError: lines differ in their number of fields, quotes do not end, or names repeat.
    """
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        header = [name.strip() for name in next(reader, ())]
        rows: list[list[str]] = []
        for row in reader:
            if len(row) == len(header) + 1 and not row[-1]:
                row.pop()  # a separator after the last field
            elif len(row) == len(header) + 1 and not rows:
                header.insert(0, "")  # R gives the column of names of rows no name
            if row and len(row) != len(header):
                what = f"line {reader.line_num} has {len(row)} fields, but there are {len(header)} columns"
                shown = separator.join(row)[:_SHOWN]
                raise DataError(f"{path}: {what}: {shown!r}; correct the line, or the quotes before it")
            if any(row):
                rows.append(row)
    except csv.Error as error:
        raise DataError(f"{path}: line {reader.line_num} cannot be read: {error}") from None
    if not rows:
        raise DataError(f"{path}: has no rows below its header")
    columns = [_factorized(values, separator == ";", missing) for values in zip(*rows, strict=True)]
    return _by_name(path, header, columns)


def _factorized(values: Sequence[str], commas: bool, missing: Collection[str]) -> Column:  # noqa: FBT001
    import pandas as pd

    codes, different = pd.factorize(np.array(values, object))
    texts: list[str] = different.tolist()
    commas = commas and any(map(_COMMA.fullmatch, texts))
    if commas and all(_NUMBER.fullmatch(text) or _COMMA.fullmatch(text) or text in missing for text in texts if text):
        texts = [text.replace(".", "") if _DOTS.fullmatch(text) else text for text in texts]
        texts = [_COMMA.sub(r"\1.\2", text) for text in texts]
    return Column.of(texts, codes, missing)


def _by_name(path: Path, names: Sequence[str], columns: Sequence[Column]) -> dict[str, Column]:
    """The columns; one without a name is the first one, or empty."""
    if len(names) > _WIDEST:
        raise DataError(f"{path}: has {len(names)} columns, more than {_WIDEST}; save them as `arrays`")
    named = list(names)
    for place, column in enumerate(columns):
        if not names[place]:
            if place and column.texts:
                raise DataError(f"{path}: column {place + 1} has no name; the first line names the columns")
            named[place] = f"Unnamed: {place}" + (".1" if f"Unnamed: {place}" in names else "")
    twice = [name for name, count in Counter(named).items() if count > 1]
    if twice:
        raise DataError(f"{path}: two columns are called {twice[0]!r}; rename one")
    return dict(zip(named, columns, strict=True))


def _parquet(path: Path, content: bytes, missing: Collection[str]) -> dict[str, Column]:
    try:
        import pyarrow as pa
        from pyarrow import parquet, types
    except ImportError:
        remedy = "pip install '.[parquet]' in the clone, or save the table as CSV"
        raise DataError(f"{path}: Parquet files need pyarrow: {remedy}") from None
    try:
        schema = parquet.read_schema(pa.BufferReader(content))
        if nested := next((field for field in schema if types.is_nested(field.type)), None):
            what = f"column {nested.name!r} holds {nested.type}, not one value in each row; leave it out of the file"
            raise DataError(f"{path}: {what}, or save such rows of numbers as an npz file for `arrays`")
        # Texts stay as they are encoded: one that repeats may take no bytes, but a copy for each row all memory.
        texts = [field.name for field in schema if types.is_string(field.type) or types.is_large_string(field.type)]
        file = parquet.ParquetFile(pa.BufferReader(content), read_dictionary=texts)
        held = file.metadata
        size = sum(held.row_group(group).total_byte_size for group in range(held.num_row_groups))
        if size > _MOST or held.num_rows * held.num_columns > _CELLS:
            what = f"unpacks to {size} bytes, {held.num_rows} rows of {held.num_columns} columns"
            raise DataError(f"{path}: {what}, more than {_MOST} bytes or {_CELLS} values; save them as `arrays`")
        if not held.num_rows:
            raise DataError(f"{path}: has no rows")
        # A thread of pyarrow that lets go of `content` while Python ends aborts the process.
        table = file.read(use_threads=False)
        names = [str(name) for name in schema.names]
        columns = [_arrow_column(path, name, table.column(place), missing) for place, name in enumerate(names)]
    except (*_DAMAGE, pa.ArrowException) as error:
        raise DataError(f"{path}: is no readable Parquet file: {plain(error)}") from None
    return _by_name(path, names, columns)


def _arrow_column(path: Path, name: str, values: Any, missing: Collection[str]) -> Column:
    import pyarrow as pa
    from pyarrow import types

    if types.is_float16(values.type):  # which cannot be encoded
        values = values.cast(pa.float32())
    held = values.combine_chunks() if types.is_dictionary(values.type) else values.combine_chunks().dictionary_encode()
    codes = held.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    try:
        texts = [text_of(value) for value in held.dictionary.to_pylist()]
    except UnicodeDecodeError:
        raise DataError(
            f"{path}: column {name!r} holds bytes that are no UTF-8 text; save texts, or leave it out of the file"
        ) from None
    return Column.of(texts, codes, missing)


def text_of(value: object) -> str:
    """A plain value as a text file has it, "" for NaN and None; a UnicodeDecodeError for bytes that are no text."""
    if isinstance(value, bytes):
        return value.decode()
    return "" if value is None or value != value else str(value)  # noqa: PLR0124 - of NaN


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


def listed(names: Collection[str], most: int = 12) -> str:
    """Names in one line; of many the first ones."""
    every = list(names)
    shown = ", ".join(every[:most])
    return shown if len(every) <= most else f"{shown}, ... ({len(every)} in all)"
