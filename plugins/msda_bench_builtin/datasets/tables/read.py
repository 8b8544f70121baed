"""Reads a user's tables (CSV, TSV, Parquet, or a folder of them) as columns of texts."""

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

import numpy as np

from msda_bench.api import Array, DataError
from msda_bench.functional import MISSING_TEXTS, plain_texts
from msda_bench_builtin.datasets.tables.folder import TABLES, Part, is_table, parts_of
from msda_bench_builtin.datasets.tables.lines import NUMBER, decoded, rows_of
from msda_bench_builtin.datasets.tables.parquet import table_columns
from msda_bench_builtin.datasets.tables.texts import names_text

NO_NAME = ("Unnamed: ", "__index_level_")
"""Begin names of columns without one, as pandas calls them, such as the index of a data frame."""
_MOST = 1 << 29
"""The maximum size of a file in bytes."""
_WIDEST = 1 << 17
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
        numbers = np.full(len(self.texts), np.nan)
        for place, text in enumerate(self.texts):
            if NUMBER.fullmatch(text):
                numbers[place] = float(text)
        return numbers

    @functools.cached_property
    def named(self) -> Column:
        """The column in which texts with the same meaning are one; see `plain_texts`."""
        return Column.of(plain_texts(self.texts, self.missing), self.codes, self.missing, self.gaps)

    def only(self, rows: Array) -> Column:
        """The column as if all other rows, which are not read, were like the first of these."""
        codes = np.full(len(self.codes), self.codes[rows[0]])
        codes[rows] = self.codes[rows]
        made = Column.of(self.texts, codes, self.missing, self.gaps)
        return replace(made, unread=len(codes) - len(rows))

    @property
    def written(self) -> Array:
        """The text of each row, "" where it is missing, as objects."""
        return np.array([*self.texts, ""], object)[self.codes]

    @property
    def values(self) -> Array:
        """The number of each row, NaN where it is missing or none."""
        return np.append(self.numbers, np.nan)[self.codes]

    def without(self, name: str, texts: Collection[str]) -> Column:
        """The column, called `name`, in which these texts stand for a missing value as well."""
        if not texts:
            return self
        made = Column.of(self.texts, self.codes, {*self.missing, *texts}, self.gaps)
        own = {f"{name}={text}" for text in made.gaps - self.gaps}
        return replace(made, gaps=self.gaps | own)

    def first(self, chosen: Array) -> str:
        """The first of the chosen texts, such as `'?' in row 3`, counted from 1 below the header; "" if none is."""
        if not chosen.any():
            return ""
        place = int(np.argmax(chosen))
        row = int(np.argmax(self.codes == place)) + 1
        return f"{self.texts[place]!r} in row {row}"

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
        codes_of_kept = np.append(places, -1)[codes]
        return cls(tuple(different), codes_of_kept, missing, frozenset({*gaps, *blanks}))


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
    tables: list[dict[str, Column]] = []
    digest = hashlib.sha256()
    for part in parts:
        sha256, columns = _read(part.path, missing)
        digest.update(f"{sha256}  {part.name}\n".encode())
        _add_folders(part, columns, missing)
        tables.append(columns)
    _refuse_other_columns([part.path for part in parts], tables)
    for part, columns in zip(parts, tables, strict=True):
        if domain not in columns and part.domain:
            columns[domain] = _constant(part.domain, columns, missing)
    joined = {name: _joined([columns[name] for columns in tables]) for name in tables[0]}
    return digest.hexdigest(), joined


def _constant(text: str, columns: Mapping[str, Column], missing: Collection[str]) -> Column:
    """A column with one text in all rows, as many as the others have."""
    rows = len(next(iter(columns.values())).codes)
    return Column.of((text,), np.zeros(rows, np.int64), missing)


def _add_folders(part: Part, columns: dict[str, Column], missing: Collection[str]) -> None:
    """Adds the columns given by the names of a file's folders; a column that the file also has must agree."""
    for name, value in part.columns.items():
        made = _constant(value, columns, missing)
        held = columns.setdefault(name, made)
        if plain_texts([*held.texts], missing) != plain_texts([*made.texts], missing):
            what = f"column {name!r} holds {names_text([*held.texts], 3)}, but its folder is {name}={value}"
            raise DataError(f"{part.path}: {what}; rename the folder or the column")


def _refuse_other_columns(files: Sequence[Path], tables: Sequence[Mapping[str, Column]]) -> None:
    """Refuses a folder whose files have different columns, and names the file that is unlike most others."""
    kinds = Counter(frozenset(columns) for columns in tables)
    ((usual, _),) = kinds.most_common(1)
    model = next(place for place, columns in enumerate(tables) if usual == columns.keys())
    for file, columns in zip(files, tables, strict=True):
        lacking = sorted(usual - columns.keys())
        more = sorted(columns.keys() - usual)
        if 2 * len(lacking) > len(usual):
            there = f"{files[model].name}, {names_text(tables[model], 4)}"
            what = f"its columns ({names_text(columns, 4)}) are not those of {there}"
            raise DataError(f"{file}: {what}; move the file that has no rows of the table out of the folder")
        if lacking or more:
            where = file if lacking else files[model]
            name, *_ = [*lacking, *more]
            what = f"{where}: has no column {name!r}, which another file of the folder has"
            raise DataError(f"{what}; give it one, empty if need be")


def _joined(parts: Sequence[Column]) -> Column:
    """One column below the other."""
    texts: list[str] = []
    codes: list[Array] = []
    gaps: set[str] = set()
    for part in parts:
        codes.append(np.where(part.codes < 0, -1, part.codes + len(texts)))
        texts += part.texts
        gaps |= part.gaps
    return Column.of(texts, np.concatenate(codes), parts[0].missing, gaps)


def _read(path: Path, missing: Collection[str]) -> tuple[str, dict[str, Column]]:
    if not is_table(path):
        ending = path.suffix.lower()
        raise DataError(f"{path}: a table is a .csv, .tsv or .parquet file, not {ending or 'without an ending'}")
    try:
        opened = gzip.open if path.name.lower().endswith(".gz") else Path.open
        with opened(path, "rb") as stream:
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
    path: Path,
    text: str,
    separator: str = ",",
    missing: Collection[str] = MISSING_TEXTS,
) -> dict[str, Column]:
    """The columns of text in lines; the first line has their names.

    Where semicolons separate, a comma in a number is its point.

    Raises:
        DataError: a line cannot be read, see `rows_of`, or names repeat.
    """
    header, rows = rows_of(path, text, separator)
    columns = [_factorized(values, missing, commas=separator == ";") for values in zip(*rows, strict=True)]
    return _by_name(path, header, columns)


def _factorized(values: Sequence[str], missing: Collection[str], *, commas: bool) -> Column:
    """A column of texts; with `commas` those of numbers may be their points."""
    import pandas as pd

    codes, different = pd.factorize(np.array(values, object))
    texts: list[str] = different.tolist()
    if commas and any(map(_COMMA.fullmatch, texts)):
        numbers = [text for text in texts if text and text not in missing]
        if all(NUMBER.fullmatch(text) or _COMMA.fullmatch(text) for text in numbers):
            texts = [_with_point(text) for text in texts]
    return Column.of(texts, codes, missing)


def _with_point(text: str) -> str:
    """A number with a point instead of a comma, and without dots between thousands."""
    if _DOTS.fullmatch(text):
        text = text.replace(".", "")
    return _COMMA.sub(r"\1.\2", text)


def _by_name(path: Path, names: Sequence[str], columns: Sequence[Column]) -> dict[str, Column]:
    """The columns; one without a name is the first one, or empty."""
    if len(names) > _WIDEST:
        raise DataError(f"{path}: has {len(names)} columns, more than {_WIDEST}; save them as `arrays`")
    named = list(names)
    for place, column in enumerate(columns):
        if names[place]:
            continue
        if place and column.texts:
            raise DataError(f"{path}: column {place + 1} has no name; the first line names the columns")
        named[place] = f"Unnamed: {place}"
        if named[place] in names:
            named[place] += ".1"
    twice = [name for name, count in Counter(named).items() if count > 1]
    if twice:
        raise DataError(f"{path}: two columns are called {twice[0]!r}; rename one")
    return dict(zip(named, columns, strict=True))


def _parquet(path: Path, content: bytes, missing: Collection[str]) -> dict[str, Column]:
    found = table_columns(path, content)
    columns = [Column.of(texts, codes, missing) for _, texts, codes in found]
    return _by_name(path, [name for name, _, _ in found], columns)


def column(path: Path, columns: Mapping[str, Column], name: str, what: str) -> Column:
    """A column by name; the DataError for an unknown one names the others."""
    if name not in columns:
        import difflib

        near = difflib.get_close_matches(name, columns, 1)
        held = f"did you mean {near[0]!r}?" if near else f"it has {names_text(columns)}"
        raise DataError(f"{path}: no column {name!r} for `{what}`; {held}")
    return columns[name]


def crossed(columns: Sequence[Column]) -> Column:
    """A column with a text for each combination of texts, missing where one of them is."""
    if len(columns) == 1:
        return columns[0]
    codes = np.stack([column.codes for column in columns], axis=1)
    different, places = np.unique(codes, axis=0, return_inverse=True)
    texts = []
    for row in different:
        words = [column.texts[code] for column, code in zip(columns, row, strict=True)]
        texts.append(" ".join(words))
    is_whole = (codes >= 0).all(1)
    made = Column.of(texts, np.where(is_whole, places.reshape(-1), -1), columns[0].missing)
    return replace(made, gaps=frozenset().union(*(column.gaps for column in columns)))
