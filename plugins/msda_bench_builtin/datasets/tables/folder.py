"""Finds the files of a folder that is read as one table, or as one set of arrays."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from msda_bench.api import DataError

TABLES = (".csv", ".tsv", ".tab", ".parquet", ".csv.gz", ".tsv.gz")
ARRAYS = (".npz",)
PARQUET = (".parquet",)
_WORKBOOKS = (".xlsx", ".xls", ".xlsm", ".xlsb", ".ods")
_PARTITION = re.compile(r"(?P<name>[^=/]+)=(?P<value>[^/]+)")
_WORDS = "train|training|val|valid|validation|dev|test|testing|eval|evaluation"
_SIDE = re.compile(rf"(?i)^(?P<first>{_WORDS})(?:[ _.-]|$)|[ _.-](?P<last>{_WORDS})$")
"""The side of a split at the beginning or the end of a file's name."""
SPLIT = "split"
"""The column of the sides that names of files say."""
_NONE = "__HIVE_DEFAULT_PARTITION__"
"""The value of a folder of rows without one, as Spark writes it."""


class Part(NamedTuple):
    """A file.

    Attributes:
        path: where it is.
        name: its path below the folder.
        columns: what its folders say of all its rows, as in `site=a/year=2020/part-0.csv`, or what its name says of
            `split`, as in `north_train.csv` beside `north_test.csv`.
        domain: the domain that its name says, if no folder says anything.
    """

    path: Path
    name: str
    columns: dict[str, str]
    domain: str = ""

    @property
    def stem(self) -> str:
        """Its name without endings."""
        return Path(self.path.name.removesuffix(".gz")).stem


def is_table(path: Path) -> bool:
    """Whether a file's name is that of a table, or a folder has one.

    Raises:
        DataError: it is a workbook, or such a folder cannot be read or has workbooks alone.
    """
    if path.is_dir():
        return holds(path, TABLES)
    if path.name.lower().endswith(_WORKBOOKS):
        raise DataError(f"{path}: is a workbook; save the sheet with the rows as CSV (UTF-8)")
    return path.name.lower().endswith(TABLES)


def holds(folder: Path, endings: Sequence[str]) -> bool:
    """Whether a folder has files with these endings, which are read as one.

    Raises:
        DataError: it cannot be read, or they lie where they are not read.
    """
    if parts_of(folder, endings):
        return True
    entries = _entries(folder)
    books = [entry for entry in entries if entry.name.lower().endswith(_WORKBOOKS)]
    if books and endings == TABLES:
        raise DataError(f"{books[0]}: is a workbook; save the sheets with the rows as CSV (UTF-8)")
    for entry in entries:
        files = _files(entry, endings) if entry.is_dir() else []
        if files:
            remedy = "put the files of all domains into one folder, or call its folders COLUMN=VALUE"
            raise DataError(f"{folder}: its files lie in folders, such as {files[0].relative_to(folder)}; {remedy}")
    return False


def parts_of(path: Path, endings: Sequence[str]) -> list[Part]:
    """The files with these endings in a folder or in its folders NAME=VALUE, by name; none if the path is no folder.

    Raises:
        DataError: the folder cannot be read, or has two files of one name or folders of different names.
    """
    if not path.is_dir():
        return []
    parts = [*_below(path, path, endings, {})]
    for part in parts:
        if part.columns.keys() != parts[0].columns.keys():
            what = f"{parts[0].name} and {part.name} lie in folders of different columns"
            raise DataError(f"{path}: {what}; name all folders alike")
    bare = [Path(part.name).with_name(part.stem) for part in parts]
    counts = Counter(bare)
    twice = [part.name for part, name in zip(parts, bare, strict=True) if counts[name] > 1]
    if twice:
        raise DataError(f"{path}: {twice[0]} and {twice[1]} are two files of one name; remove one, or rename it")
    return _sided(parts)


def _sided(parts: list[Part]) -> list[Part]:
    """The files with their domains, and with their sides if all are called as the two sides of a split are."""
    if any(part.columns for part in parts):
        return parts
    found = [_SIDE.search(part.stem) for part in parts]
    sides = [(match["first"] or match["last"]).casefold() for match in found if match]
    trained = [side for side in sides if side.startswith("train")]
    if len(sides) < len(parts) or not trained or len(trained) == len(sides):
        return [part._replace(domain=part.stem) for part in parts]
    sided = []
    for part, side in zip(parts, sides, strict=True):
        domain = _SIDE.sub("", part.stem, count=1) or part.stem
        sided.append(part._replace(domain=domain, columns={SPLIT: side}))
    return sided


def files_of(path: Path, endings: Sequence[str]) -> list[Path]:
    """The files that are read as one; the path itself if it is no folder, or one without such files."""
    return [part.path for part in parts_of(path, endings)] or [path]


def arrays_in(path: Path) -> tuple[str, ...]:
    """How the files of arrays end that a path names, or that a folder has: `.npz`, or else `.parquet`."""
    if path.is_dir():
        return PARQUET if not parts_of(path, ARRAYS) and parts_of(path, PARQUET) else ARRAYS
    return PARQUET if path.suffix.lower() in PARQUET else ARRAYS


def not_read(path: Path, endings: Sequence[str]) -> list[str]:
    """What else lies in a folder, and in its folders NAME=VALUE."""
    files = {part.path for part in parts_of(path, endings)}
    folders: set[Path] = set()
    for file in files:
        folders.update(path / folder for folder in file.relative_to(path).parents)
    beside: set[Path] = set()
    for folder in folders:
        beside.update(_entries(folder))
    return sorted(str(entry.relative_to(path)) for entry in beside - folders - files)


def said_of(path: Path, endings: Sequence[str]) -> list[str]:
    """A line on the columns that the names of folders give."""
    parts = parts_of(path, endings)
    columns = [part.columns for part in parts]
    if not columns or not columns[0]:
        return []
    if parts[0].domain:
        return [f"the names of files, such as {parts[0].name}, are the domain and the column {SPLIT!r}"]
    example = "/".join(f"{name}={value}" for name, value in columns[0].items())
    return [f"the names of folders, such as {example}, are the columns {', '.join(columns[0])}"]


def stamp(path: Path, endings: Sequence[str]) -> tuple[int, ...]:
    """Changes with a file: its size, time and place on the disk; of a folder those of its files.

    Raises:
        DataError: there is no such file, it is none, empty or too large; or a folder has no such file.
    """
    try:
        files = files_of(path, endings)
        states = [(file.is_file(), file.stat()) for file in files]
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise DataError(f"{path}: cannot be read: {why}; correct `file` in the suite") from None
    for file, (is_file, state) in zip(files, states, strict=True):
        if not is_file:
            what = f"a folder without {'a table' if endings == TABLES else 'arrays'}"
            raise DataError(f"{file}: is {what if file.is_dir() else 'no regular file'}; name a file")
        if not state.st_size:
            raise DataError(f"{file}: is empty")
    return tuple(number for _, state in states for number in (state.st_size, state.st_mtime_ns, state.st_ino))


def _below(root: Path, folder: Path, endings: Sequence[str], columns: dict[str, str]) -> Iterator[Part]:
    """The files of a folder; if it has none, those of its folders NAME=VALUE."""
    files = _files(folder, endings)
    for file in files:
        yield Part(file, file.relative_to(root).as_posix(), columns)
    if files:
        return
    for entry in _entries(folder):
        named = _PARTITION.fullmatch(entry.name)
        if named and entry.is_dir() and not entry.is_symlink():
            value = unquote(named["value"])
            more = {unquote(named["name"]): "" if value == _NONE else value}
            yield from _below(root, entry, endings, {**columns, **more})


def _files(folder: Path, endings: Sequence[str]) -> list[Path]:
    return [entry for entry in _entries(folder) if entry.name.lower().endswith(tuple(endings)) and entry.is_file()]


def _entries(folder: Path) -> list[Path]:
    """What a folder holds by name, without hidden entries."""
    try:
        return sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))
    except OSError as error:
        raise DataError(f"{folder}: cannot be read: {error.strerror}") from None
