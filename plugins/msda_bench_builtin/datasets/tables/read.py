"""Reads tables of the user's (CSV, TSV, Parquet, or a folder of them) as columns of texts."""

from __future__ import annotations

import functools
import gzip
import hashlib
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
from msda_bench_builtin.datasets.tables.folder import TABLES, Part, is_table, parts_of
from msda_bench_builtin.datasets.tables.lines import NUMBER, decoded, rows_of

NO_NAME = ("Unnamed: ", "__index_level_")
"""Begin names of columns without one, as pandas calls them, such as the index of a data frame."""
_MOST = 1 << 29
"""The maximum size of a file in bytes."""
_WIDEST = 1 << 17
_CELLS = 1 << 27
"""The maximum number of values in a Parquet file, where equal ones take next to no bytes."""
PARQUET_DAMAGE = (OSError, ValueError, TypeError, LookupError, NotImplementedError, OverflowError, MemoryError)
"""Exceptions of pyarrow for files that are damaged, encrypted, or hold what it cannot read."""
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
        return np.array([float(text) if NUMBER.fullmatch(text) else np.nan for text in self.texts], np.float64)

    @functools.cached_property
    def named(self) -> Column:
        """The column with one text for those that mean the same; see `plain_texts`."""
        return Column.of(plain_texts(self.texts, self.missing), self.codes, self.missing, self.gaps)

    def only(self, rows: Array) -> Column:
        """The column as if all other rows, which are not read, were like the first of these."""
        codes = np.full(len(self.codes), self.codes[rows[0]])
        codes[rows] = self.codes[rows]
        return replace(Column.of(self.texts, codes, self.missing, self.gaps), unread=len(codes) - len(rows))

    def without(self, name: str, texts: Collection[str]) -> Column:
        """The column, called `name`, where these texts stand for a missing value, too."""
        made = Column.of(self.texts, self.codes, {*self.missing, *texts}, self.gaps)
        return replace(made, gaps=self.gaps | {f"{name}={text}" for text in made.gaps - self.gaps})

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
    if not path.is_dir():
        return _read(path, missing)
    parts = parts_of(path, TABLES)
    made = [_read(part.path, missing) for part in parts]
    tables = [columns for _, columns in made]
    for part, columns in zip(parts, tables, strict=True):
        _add_folders(part, columns, missing)
    _refuse_other_columns([part.path for part in parts], tables)
    digest = hashlib.sha256()
    for part, (sha256, columns) in zip(parts, made, strict=True):
        digest.update(f"{sha256}  {part.name}\n".encode())
        if domain not in columns and part.domain:
            columns[domain] = _constant(part.domain, columns, missing)
    return digest.hexdigest(), {name: _joined([columns[name] for columns in tables]) for name in tables[0]}


def _constant(text: str, columns: Mapping[str, Column], missing: Collection[str]) -> Column:
    """A column with one text in all rows, as many as the others have."""
    rows = len(next(iter(columns.values())).codes)
    return Column.of((text,), np.zeros(rows, np.int64), missing)


def _add_folders(part: Part, columns: dict[str, Column], missing: Collection[str]) -> None:
    """Adds the columns that the names of a file's folders give; one that the file has, too, must say the same."""
    for name, value in part.columns.items():
        made = _constant(value, columns, missing)
        held = columns.get(name)
        if held is not None and plain_texts([*held.texts], missing) != plain_texts([*made.texts], missing):
            what = f"column {name!r} holds {listed([*held.texts], 3)}, but its folder is {name}={value}"
            raise DataError(f"{part.path}: {what}; rename the folder or the column")
        columns[name] = made if held is None else held


def _refuse_other_columns(files: Sequence[Path], tables: Sequence[Mapping[str, Column]]) -> None:
    """Refuses a folder whose files have different columns, and names the file that is unlike most others."""
    usual = Counter(frozenset(columns) for columns in tables).most_common(1)[0][0]
    model = next(place for place, columns in enumerate(tables) if usual == columns.keys())
    for file, columns in zip(files, tables, strict=True):
        lacking, more = sorted(usual - columns.keys()), sorted(columns.keys() - usual)
        if not lacking and not more:
            continue
        if 2 * len(lacking) > len(usual):
            what = (
                f"its columns ({listed(columns, 4)}) are not those of {files[model].name}, {listed(tables[model], 4)}"
            )
            raise DataError(f"{file}: {what}; move the file that has no rows of the table out of the folder")
        where = file if lacking else files[model]
        what = f"{where}: has no column {[*lacking, *more][0]!r}, which another file of the folder has"
        raise DataError(f"{what}; give it one, empty if need be")


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
    text, separator = decoded(path, content)
    return delimited(path, text, separator, missing)


def delimited(
    path: Path, text: str, separator: str = ",", missing: Collection[str] = MISSING_TEXTS
) -> dict[str, Column]:
    """The columns of text in lines; the first line has their names.

    Where semicolons separate, a comma in a number is its point.

    Raises:
        DataError: a line cannot be read, see `rows_of`, or names repeat.
    """
    header, rows = rows_of(path, text, separator)
    columns = [_factorized(values, separator == ";", missing) for values in zip(*rows, strict=True)]
    return _by_name(path, header, columns)


def _factorized(values: Sequence[str], commas: bool, missing: Collection[str]) -> Column:  # noqa: FBT001
    import pandas as pd

    codes, different = pd.factorize(np.array(values, object))
    texts: list[str] = different.tolist()
    commas = commas and any(map(_COMMA.fullmatch, texts))
    if commas and all(NUMBER.fullmatch(text) or _COMMA.fullmatch(text) or text in missing for text in texts if text):
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
            raise DataError(f"{path}: {what}, or read it as `arrays`, whose inputs may be lists of numbers")
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
    except (*PARQUET_DAMAGE, pa.ArrowException) as error:
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


def names_in(names: str, columns: Collection[str]) -> list[str]:
    """The columns that a text names, with commas between them unless a column is called so."""
    return [names] if names in columns else [name.strip() for name in names.split(",")]


def crossed(columns: Sequence[Column]) -> Column:
    """A column with a text for each combination of texts, missing where one of them is."""
    if len(columns) == 1:
        return columns[0]
    codes = np.stack([column.codes for column in columns], axis=1)
    different, places = np.unique(codes, axis=0, return_inverse=True)
    texts = [" ".join(column.texts[code] for column, code in zip(columns, row, strict=True)) for row in different]
    whole = (codes >= 0).all(1)
    made = Column.of(texts, np.where(whole, places.reshape(-1), -1), columns[0].missing)
    return replace(made, gaps=frozenset().union(*(column.gaps for column in columns)))


def listed(names: Collection[str], most: int = 12) -> str:
    """Names in one line; of many the first ones."""
    every = list(names)
    shown = ", ".join(every[:most])
    return shown if len(every) <= most else f"{shown}, ... ({len(every)} in all)"
