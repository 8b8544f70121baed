"""Arrays of the user's, such as features of CLIP, DINOv2 or an EEG: an npz archive of numpy."""

from __future__ import annotations

import hashlib
import math
import zipfile
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Annotated, Any, cast

import numpy as np
from pydantic import AliasChoices, Field

from msda_bench.api import AddedLater, Array, DataError, Files, Identified, Inputs, InputSpec, NewRowsReader, component
from msda_bench.functional import lost_in_float32, standardiser
from msda_bench_builtin.datasets.tables.array_doubts import doubts_in, sampled
from msda_bench_builtin.datasets.tables.findings import Look
from msda_bench_builtin.datasets.tables.folder import (
    ARRAYS,
    PARQUET,
    TABLES,
    arrays_in,
    files_of,
    holds,
    parts_of,
    said_of,
    stamp,
)
from msda_bench_builtin.datasets.tables.identify import given_by, identified, repaired
from msda_bench_builtin.datasets.tables.new_arrays import ArraysReader, NewArrays, UsualArray
from msda_bench_builtin.datasets.tables.official import Marked, marked_by, named_in
from msda_bench_builtin.datasets.tables.parquet_arrays import fields_in, has_lists, read_columns, shape_in
from msda_bench_builtin.datasets.tables.parts import Roles, missing_in, predictions_in
from msda_bench_builtin.datasets.tables.proposals import proposals
from msda_bench_builtin.datasets.tables.read import Column, crossed, listed, names_in, plain, text_of
from msda_bench_builtin.datasets.tables.rows import Contents, FromFile
from msda_bench_builtin.datasets.tables.signals import (
    Signals,
    fitted,
    guessed,
    network_for,
    oriented,
    padded_axes,
    signals_in,
)

_MOST = 1 << 31
"""The maximum size of a compressed array, unpacked, in bytes; one that is not compressed may have any."""
_SMALL, _RATIO = 1 << 26, 100
"""Above so many bytes an array that unpacks to so many times its size is taken for a bomb."""
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
"""By the version of numpy's format; a third is for names of fields, which no array here has."""
_SPARSE = {"format", "shape", "data"}
"""Arrays of each archive that `scipy.sparse.save_npz` writes."""
_DAMAGE = (OSError, EOFError, ValueError, MemoryError, RuntimeError, zipfile.BadZipFile, zlib.error, SyntaxError)
"""Exceptions of zipfile and numpy for archives that are damaged, encrypted, or hold forbidden contents."""


@component
class Arrays(FromFile):
    """Your own features, an npz archive as `numpy.savez` writes it: inputs, labels and domains, an array each.

    A folder of archives is read as one; if they have no array of domains, each is a domain of its name. Python objects
    are never read.

    Parameters:
        inputs: the array of inputs, (n, ...) numbers.
        labels: that of labels, (n,) whole numbers, texts, or any numbers for a regression.
        domain: that of domains, (n,) whole numbers or texts; a suite may also write `domains`.
        groups: that of groups, (n,) whole numbers or texts, or several with commas between them, such as
            `subject,session`; None if rows are independent.
        signals: "channels_first" if a row of the inputs is a signal (channels, time), "channels_last" if it is (time,
            channels), either if it is (time,); "none" if each of its numbers stands for itself. Channels of signals are
            standardised each as a whole, and NaN stands for a gap, or for padding after the end of a shorter signal.
    """

    name = "arrays"
    version = 2
    endings = ARRAYS

    inputs: str = "x"
    labels: str = "y"
    domain: Annotated[str, Field(validation_alias=AliasChoices("domains", "domain"))] = "domain"
    groups: str | None = None
    signals: Annotated[Signals, AddedLater()] = "none"

    def reads(self) -> tuple[str, ...]:
        """`.npz`, or `.parquet` if the file or folder has such columns."""
        return arrays_in(Path(self.file))

    def roles(self) -> Roles:
        """The arrays of domains, labels and groups; see `FromFile`."""
        held = arrays_of(files_of(Path(self.file), self.reads())[0])
        test = None if self.test_rows is None else named_in(self.test_rows, self._names())[0]
        given = [self.inputs, self.labels, self.domain, self.groups, self.predictions, test]
        if twice := [name for name in given if name is not None and given.count(name) > 1]:
            what = f"array {twice[0]!r} cannot be two of inputs, labels, domains, groups, predictions and test rows"
            raise DataError(f"{self.file}: {what}")
        parts = {"domain": self.domain, "label": self.labels, "group": self.groups}
        columns = {
            role: crossed([self._column(one) for one in names_in(name, held)])
            for role, name in parts.items()
            if name is not None
        }
        return Roles(
            Path(self.file),
            columns["domain"],
            columns["label"],
            columns.get("group"),
            tuple(f"{role} (array {name!r})" for role, name in parts.items()),
            frozenset().union(*(column.gaps for column in columns.values())),
            self._marked(test),
        )

    def _marked(self, name: str | None) -> Marked | None:
        """What marks official test rows; `name` is the array that does."""
        if name is None:
            return None
        return marked_by(Path(self.file), "array", self.test_rows or "", {name: self._column(name)})

    def read(self) -> Contents:
        """The arrays; see `FromFile`."""
        path, parts = Path(self.file), self.parts()
        x, gaps = self._inputs(len(parts.y))
        predictions = None
        if self.predictions is not None:
            part, given = f"array {self.predictions!r}", self._arrays(self.predictions)
            if given.ndim == 1:
                predictions = predictions_in(path, part, self._column(self.predictions), parts)
            else:
                predictions = _scores(path, part, given, (len(x), parts.task.outputs))
        blurred = any(lost_in_float32(x[rows]).any() for rows in parts.rows.values())
        dtype = np.float64 if blurred else np.float32
        spec = InputSpec(x.shape[1:])
        if gaps:
            channels, time = x.shape[1:]
            spec = InputSpec((2 * channels, time), mask=channels)
        odd = tuple(doubts_in(x, parts, self.inputs, alike=self.standardise == "domain", gaps=self.signals != "none"))
        return Contents(
            **vars(parts), sha256=_sha256(path), x=x, input=spec, predictions=predictions, dtype=dtype, odd=odd
        )

    def _inputs(self, rows: int | None = None) -> tuple[Array, bool]:
        """The array of inputs, and whether numbers are missing; a DataError unless it has so many rows of numbers."""
        path, x = Path(self.file), self._arrays(self.inputs)
        if x.ndim <= 1 or x.dtype.kind not in "fiub" or 0 in x.shape or len(x) != (len(x) if rows is None else rows):
            what = f"array {self.inputs!r} holds {x.dtype} of shape {x.shape}"
            raise DataError(f"{path}: {what}; inputs are numbers (n, ...), a row for each example")
        x = self._oriented(path, x)
        return x, _gaps(path, self.inputs, x, allowed=self.signals != "none")

    def new_rows_reader(self, files: Files) -> NewRowsReader:
        """What reads arrays of the same shape."""
        read = self.contents()
        x = cast("Array", read.x)
        return ArraysReader(
            classes=read.classes,
            sees_target=self.standardise == "domain",
            source=self,
            shape=x.shape[1:],
            dtype=read.dtype,
            usual=UsualArray.of(x, read.rows),
            gaps=read.input.mask > 0,
        )

    def named(self) -> NewArrays:
        """All arrays of a file that may lack labels and domains.

        Raises:
            DataError: it is no such file, or its inputs are no numbers.
        """
        x, _ = self._inputs()
        names = self._names()
        others = {name: self._of_one_value(name) for name in names if name != self.inputs}
        says = self.domain in names or Path(self.file).is_dir()
        return NewArrays(x, others, self._column(self.domain) if says else None)

    def _of_one_value(self, name: str) -> Array | None:
        """An array of one value a row, of any type but Python objects; None for any other."""
        first = files_of(Path(self.file), self.reads())[0]
        found = shape_of(first, name) if name in arrays_of(first) else None
        if found is not None and (len(found[0]) != 1 or found[1] == "O"):
            return None
        try:
            return self._arrays(name)
        except DataError:
            return None

    def _oriented(self, path: Path, x: Array) -> Array:
        """Signals with their channels first, other rows as they are."""
        if self.signals != "none" and x.ndim not in {2, 3}:
            what = f"array {self.inputs!r} has the shape {x.shape}"
            raise DataError(f"{path}: {what}; signals are (n, time), (n, channels, time) or (n, time, channels)")
        return oriented(x, self.signals)

    def _column(self, name: str) -> Column:
        """An array of labels, domains or groups as a column of texts; NaN and empty texts are missing."""
        values, rows = self._arrays(name), self._arrays(self.domain).shape[:1]
        if values.shape != rows or values.dtype.kind not in "iubfUS":
            what = f"array {name!r} holds {values.dtype} of shape {values.shape}"
            raise DataError(f"{self.file}: {what}; whole numbers or texts of shape ({rows[0]},) are needed")
        different, codes = np.unique(values, return_inverse=True)
        try:
            texts = [text_of(value) for value in different.tolist()]
        except UnicodeDecodeError:
            raise DataError(f"{self.file}: array {name!r} holds bytes that are no UTF-8 text; save texts") from None
        everywhere, own = missing_in(self.missing)
        made = Column.of(texts, codes.reshape(-1).astype(np.int64), everywhere)
        return made.without(name, own[name]) if name in own else made

    def _arrays(self, name: str) -> Array:
        """An array; of a folder those of its files, one below the other."""
        path, parts = Path(self.file), parts_of(Path(self.file), self.reads())
        if not parts:
            return read_arrays(path, [name])[name]
        held = arrays_of(parts[0].path)
        if name in parts[0].columns or (name == self.domain and name not in held):
            counted = self.labels if self.labels in held else self.inputs
            counts = [len(read_arrays(part.path, [counted])[counted]) for part in parts]
            return np.repeat([part.columns.get(name, part.domain or part.stem) for part in parts], counts)
        return _joined(name, {part.path: read_arrays(part.path, [name])[name] for part in parts})

    def identify(self, path: Path, sha256: str) -> Identified | None:
        """None for what is no archive of arrays; a DataError that names the arrays for one that is."""
        if path.suffix.lower() not in ARRAYS and not (path.is_file() and has_lists(path)):
            return None
        held = listed(arrays_of(path))
        raise DataError(f"{path}: name the arrays of domains and labels by --domain and --label; it has {held}")

    def identify_columns(self, path: Path, columns: Mapping[str, str]) -> Identified | None:
        """Looks through an archive: its domains and classes; the inputs are `x`, or the only other array."""
        is_npz = holds(path, ARRAYS) and not holds(path, TABLES) if path.is_dir() else path.suffix.lower() in ARRAYS
        if not is_npz and not has_lists(path):
            return None
        if "text" in columns:
            raise DataError(f"{path}: arrays have no column of text; leave --text out, or save a table")
        given = given_by(columns)
        given |= {name: given.pop(role) for role, name in (("label", "labels"), ("group", "groups")) if role in given}
        named = {*given.values(), *given.get("groups", "").split(","), given.get("test_rows", "").partition("=")[0]}
        given["inputs"] = self._found_inputs(path, named)
        data, more, notes = repaired(replace(self, file=str(path), **given), columns.get("unlabelled", "target"))
        doubts: tuple[str, ...] = ()
        if "signals" not in given:
            data, doubts = data.as_signals()
            more |= {"signals": data.signals} if data.signals != "none" else {}
        roles, lines = data.proposed(says_test="test" in columns)
        data, more = replace(data, **roles), more | roles
        notes += lines
        notes = [*said_of(path, data.reads()), *notes, *data.shapes(), *data.contents().odd]
        if data.signals == "none":
            found = identified(data, given | more, notes)
        else:
            notes.append("plain models are left out of the suite: they read rows of numbers, no signals")
            found = identified(data, given | more, notes, network_for(data.contents().x))
        return replace(found, doubts=(*found.doubts, *doubts))

    def _found_inputs(self, path: Path, named: Collection[str]) -> str:
        """The array of inputs: `x`, or the only other one, or the only other one with rows of numbers."""
        first = files_of(path, arrays_in(path))[0]
        others = [name for name in arrays_of(first) if name not in named]
        if self.inputs in others:
            return self.inputs
        shapes = {name: shape_of(first, name) for name in others}
        rows = [name for name, found in shapes.items() if found and len(found[0]) > 1 and found[1] in "iufb"]
        if len(others) != 1 and len(rows) != 1:
            held = listed([_shown_shape(first, name) for name in others]) or "no other"
            what = f"which array holds the inputs? call it {self.inputs!r}; it has {held}"
            if any(name.endswith("_test") for name in others):
                what += "; make one array of those of both sides, and an array `split` of 'train' and 'test'"
            raise DataError(f"{path}: {what}")
        return others[0] if len(others) == 1 else rows[0]

    def as_signals(self) -> tuple[Arrays, tuple[str, ...]]:
        """The dataset with rows (n, a, b) read as signals, or why it is in doubt whether they are."""
        x = self._arrays(self.inputs)
        if x.ndim != len(("row", "channels", "time")) or x.dtype.kind not in "fiub" or 0 in x.shape:
            return self, ()
        guess = guessed(x)
        if not guess.doubt:
            return replace(self, signals=guess.signals), ()
        what = f"array {self.inputs!r} of shape {x.shape} may hold signals, but {guess.doubt}"
        return self, (f"{what}; say --signals channels_first, channels_last, or none if its rows are no signals",)

    def describe(self) -> tuple[str, ...]:
        """What was found in the file, and the size of signals."""
        if self.signals == "none":
            return super().describe()
        return (*super().describe(), f"signals: {signals_in(self.contents().x)}")

    def proposed(self, *, says_test: bool) -> tuple[dict[str, str], list[str]]:
        """Roles for arrays of one value a row that are not read, as parameters; and a line on each."""
        columns = {name: made for name in self._left() if (made := self._beside(name)) is not None}
        if not columns:
            return {}, []
        look = Look.of(Path(self.file), columns, self.parts(), self.domain, says_test=says_test)
        look = replace(look, beside=tuple(sampled(self._arrays(self.inputs), look.rows)), kind="array")
        found = proposals(look, [*columns])
        params = {"groups": "groups", "test": "test_rows"}
        roles = {params[finding.fate]: finding.column for finding in found if finding.fate in params}
        kept = (finding if finding.fate in params else replace(finding, fate="none") for finding in found)
        return roles, [finding.line(answered=True) for finding in kept if finding.fate in params or finding.remedy]

    def _names(self) -> list[str]:
        """All arrays, and what the names of folders say."""
        path = Path(self.file)
        folders = [part.columns for part in parts_of(path, self.reads())[:1]]
        return [*arrays_of(files_of(path, self.reads())[0]), *(name for columns in folders for name in columns)]

    def _left(self) -> list[str]:
        """The arrays that are not read."""
        names = self._names()
        read = {self.inputs, self.labels, self.domain, self.predictions, *names_in(self.groups or "", names)}
        read |= set() if self.test_rows is None else {named_in(self.test_rows, names)[0]}
        return [name for name in names if name not in read]

    def _beside(self, name: str) -> Column | None:
        """An array of whole numbers or texts, one a row, as a column; None for any other."""
        first = files_of(Path(self.file), self.reads())[0]
        if name in arrays_of(first):
            found = shape_of(first, name)
            if found is None or len(found[0]) != 1 or found[1] not in "iubUS":
                return None
        try:
            return self._column(name)
        except DataError:  # of another length
            return None

    def shapes(self) -> list[str]:
        """The shape of an example, and the arrays that are not read."""
        first = files_of(Path(self.file), self.reads())[0]
        x, left, held = self.contents().x, self._left(), arrays_of(first)
        lines = [f"inputs: array {self.inputs!r}, {x.dtype} of shape {x.shape[1:]} in each row"]
        if self.signals != "none":
            what = f"signals: array {self.inputs!r} {x.shape[1:]}, {signals_in(x)}"
            lines = [f"{what}; --signals says how it is meant otherwise"]
        others = [_shown_shape(first, name) for name in left if name in held]
        if others:
            ask = "" if self.groups else "; name by --group one that says which rows belong together"
            lines.append(f"arrays not read: {listed(others)}{ask}")
        return lines

    def fit(self, train: Mapping[str, Inputs]) -> Callable[[str, Inputs], Inputs]:
        """Learns means and variances from training rows."""
        rows = cast("Mapping[str, Array]", train)
        sources = {name: rows[name] for name in list(rows)[:-1] or rows}
        if self.signals != "none":
            features = fitted(rows, sources, self.standardise, gaps=self.input.mask > 0)
            return cast("Callable[[str, Inputs], Inputs]", features)
        if self.standardise == "none":
            return super().fit(train)
        learned = standardiser(rows, "domain") if self.standardise == "domain" else standardiser(sources, "pooled")
        return cast("Callable[[str, Inputs], Inputs]", learned)


def _scores(path: Path, part: str, scores: Array, shape: tuple[int, int]) -> Array:
    """A score for each row and class, or a number for each row."""
    if scores.shape != shape or scores.dtype.kind not in "fiu":
        what = f"{part} holds {scores.dtype} of shape {scores.shape}"
        raise DataError(
            f"{path}: {what}; predictions are classes (n,), or a number for each class {shape}, in their order"
        )
    with np.errstate(over="ignore"):
        given = scores.astype(np.float32)
    if np.isinf(given).any():
        raise DataError(f"{path}: {part} holds a number that is not finite in float32; correct it")
    return given


def _joined(name: str, of: Mapping[Path, Array]) -> Array:
    """The arrays of several files, one below the other."""
    first, *_ = of
    for path, array in of.items():
        texts = array.dtype.kind in "US"
        if array.shape[1:] != of[first].shape[1:] or not array.ndim or texts != (of[first].dtype.kind in "US"):
            here, there = (f"{one.dtype} of shape {one.shape}" for one in (array, of[first]))
            what = f"array {name!r} holds {here}, but in {first.name} {there}"
            raise DataError(f"{path}: {what}; save arrays that differ in their first size alone")
    return np.concatenate([*of.values()])


def _gaps(path: Path, name: str, x: Array, *, allowed: bool) -> bool:
    """Whether numbers are missing (NaN).

    Raises:
        DataError: inputs are not finite otherwise, or have gaps that are not `allowed`, or a row has no number.
    """
    with np.errstate(over="ignore"):
        finite = np.isfinite(x.astype(np.float32, copy=False))
    if finite.all():
        return False
    missing: Array = np.isnan(x)
    what, axes = f"array {name!r}", tuple(range(1, x.ndim))
    infinite = (~finite & ~missing).any(axes)
    if infinite.any():
        row = int(np.argmax(infinite))
        raise DataError(
            f"{path}: row {row} of {what} holds a number that is not finite in float32; correct or remove the row"
        )
    empty = missing.all(axes)
    if allowed and empty.any():
        raise DataError(f"{path}: row {int(np.argmax(empty))} of {what} has no number, NaN alone; remove the row")
    if allowed:
        return True
    lacking = missing.any(axes)
    many = f"{np.count_nonzero(lacking)} of {len(x)} rows of {what}, first row {int(np.argmax(lacking))}"
    signals = "`signals: channels_first` or `channels_last` (`--signals`) reads them with gaps"
    if padded_axes(missing):
        raise DataError(f"{path}: {many}, begin or end in NaN, the padding of series of different lengths; {signals}")
    remedy = "fill them, such as by numpy.nan_to_num, or remove these rows"
    remedy += f"; {signals}" if x.ndim == len(("row", "channels", "time")) else ""
    raise DataError(f"{path}: {many}, have missing values (NaN); {remedy}")


def _sha256(path: Path) -> str:
    """Of a file; of a folder as `sha256sum` would list its files."""
    digest = hashlib.sha256()
    for part in parts_of(path, arrays_in(path)):
        with part.path.open("rb") as stream:
            digest.update(f"{hashlib.file_digest(stream, 'sha256').hexdigest()}  {part.name}\n".encode())
    if path.is_dir():
        return digest.hexdigest()
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def read_arrays(path: Path, names: Sequence[str]) -> dict[str, Array]:
    """The named arrays of an npz archive, or columns of a Parquet file.

    Raises:
        DataError: it is no such archive, is damaged, lacks an array, or holds Python objects.
    """
    if path.suffix.lower() in PARQUET:
        return read_columns(path, names)
    held = members(path)
    try:
        for name in names:
            if name not in held:
                raise DataError(f"{path}: no array {name!r}; it has {listed(held) or 'none'}")
            _check_size(path, name, held[name])
        with np.load(path, allow_pickle=False) as arrays:
            read = {name: arrays[name] for name in names}
        if others := [name for name, array in read.items() if not isinstance(array, np.ndarray)]:
            raise ValueError(f"{others[0]!r} is no array of numpy")  # a member of this name beside one with .npy
    except _DAMAGE as error:
        raise DataError(f"{path}: cannot be read ({plain(error)}); write it with numpy.savez") from None
    else:
        return read


def _check_size(path: Path, name: str, member: zipfile.ZipInfo) -> None:
    """Refuses an array that unpacks to very much, or has less than its header says, for which numpy would ask first."""
    stored = member.compress_type == zipfile.ZIP_STORED
    bomb = member.file_size > _SMALL and member.file_size > _RATIO * max(1, member.compress_size)
    if not stored and (member.file_size > _MOST or bomb):
        what = f"array {name!r} unpacks from {member.compress_size} to {member.file_size} bytes"
        raise DataError(f"{path}: {what}, too many; write it with numpy.savez, uncompressed")
    with zipfile.ZipFile(path) as archive, archive.open(member) as content:
        shape, dtype = _header(name, content)
        offset, size = content.tell(), math.prod(shape) * dtype.itemsize
        if dtype.hasobject:
            what = f"array {name!r} holds Python objects, which are never read"
            raise DataError(f"{path}: {what}; save numbers, or texts by astype(str) (of a sparse matrix its toarray())")
        if any(side < 0 for side in shape) or offset + size != member.file_size:
            raise ValueError(f"array {name!r} has {member.file_size - offset} bytes, its header says {size}")


def _header(name: str, content: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = np.lib.format.read_magic(content)
    if version not in _HEADERS:
        raise ValueError(f"array {name!r} has version {version} of numpy's format")
    shape, _, dtype = _HEADERS[version](content)
    return shape, dtype


def _shown_shape(path: Path, name: str) -> str:
    """An array that is not read, such as `session (240,)`."""
    found = shape_of(path, name)
    return f"{name} {str(found[0]).replace(' 0', ' ...') if found else '(no array)'}"


def shape_of(path: Path, name: str) -> tuple[tuple[int, ...], str] | None:
    """The shape of an array, and the kind of its dtype; None if it is none."""
    if path.suffix.lower() in PARQUET:
        return shape_in(path, name)
    try:
        with zipfile.ZipFile(path) as archive, archive.open(members(path)[name]) as content:
            shape, dtype = _header(name, content)
    except _DAMAGE:
        return None
    return shape, dtype.kind


def arrays_of(path: Path) -> list[str]:
    """The names of the arrays of an archive, or of the columns of a Parquet file; a DataError if it is neither."""
    stamp(path, arrays_in(path))
    return [*(fields_in(path) if path.suffix.lower() in PARQUET else members(path))]


def members(path: Path) -> dict[str, zipfile.ZipInfo]:
    """The arrays of an archive by name; a DataError if it is none."""
    stamp(path, ARRAYS)
    try:
        with zipfile.ZipFile(path) as archive:
            held = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
    except _DAMAGE as error:
        why = f"cannot be read ({plain(error)})" if zipfile.is_zipfile(path) else "is no npz archive"
        raise DataError(f"{path}: {why}; write it with numpy.savez") from None
    if held.keys() >= _SPARSE:
        remedy = "write numpy.savez(FILE, x=matrix.toarray(), y=labels, domain=domains)"
        raise DataError(f"{path}: is a sparse matrix of scipy alone, without labels and domains; {remedy}")
    return held
