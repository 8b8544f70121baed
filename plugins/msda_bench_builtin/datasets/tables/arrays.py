"""Arrays of the user's, such as features of CLIP, DINOv2 or an EEG: an npz archive of numpy."""

from __future__ import annotations

import functools
import hashlib
import math
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Annotated, NamedTuple, cast

import numpy as np
from pydantic import AliasChoices, Field

from msda_bench.api import Array, DataError, Identified, Inputs, InputSpec, component
from msda_bench.functional import lost_in_float32
from msda_bench_builtin.datasets.tables.identify import given_by, identified, repaired
from msda_bench_builtin.datasets.tables.parts import Parts, Roles, parts_of, predictions_in
from msda_bench_builtin.datasets.tables.read import Column, listed, plain, stamp, text_of
from msda_bench_builtin.datasets.tables.rows import Contents, FromFile

_MOST = 1 << 31
"""The maximum size of a compressed array, unpacked, in bytes; one that is not compressed may have any."""
_SMALL, _RATIO = 1 << 26, 100
"""Above so many bytes an array that unpacks to so many times its size is taken for a bomb."""
_ROWS = 4096
"""Rows that are looked at in one go."""
_LOCAL_HEADER = 30
"""Bytes of a member's header in a zip archive, without its name and extra field."""
_WIDEST = 1 << 20
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
"""By the version of numpy's format; a third is for names of fields, which no array here has."""
_DAMAGE = (
    OSError, EOFError, ValueError, MemoryError, RuntimeError, OverflowError,
    zipfile.BadZipFile, zlib.error, SyntaxError, TypeError,
)  # fmt: skip
"""Exceptions of zipfile and numpy for archives that are damaged, encrypted, or hold forbidden contents."""


@component
class Arrays(FromFile):
    """Your own features, an npz archive as `numpy.savez` writes it: inputs, labels and domains, an array each.

    Archives written by `numpy.savez` stay on the disk and are mapped into memory; those of `numpy.savez_compressed` are
    unpacked in memory. Python objects are never read.

    Parameters:
        inputs: the array of inputs, (n, ...) numbers.
        labels: that of labels, (n,) whole numbers, texts, or any numbers for a regression.
        domain: that of domains, (n,) whole numbers or texts; a suite may also write `domains`.
        groups: that of groups, (n,) whole numbers or texts; None if rows are independent.
    """

    name = "arrays"
    version = 1

    inputs: str = "x"
    labels: str = "y"
    domain: Annotated[str, Field(validation_alias=AliasChoices("domains", "domain"))] = "domain"
    groups: str | None = None

    def parts(self) -> Parts:
        """The arrays that are no inputs; see `FromFile`."""
        return self._parts(self._arrays())

    def read(self) -> Contents:
        """The arrays; see `FromFile`."""
        path, arrays = Path(self.file), self._arrays()
        x = arrays[self.inputs]
        if x.ndim == 1 or x.dtype.kind not in "fiub" or 0 in x.shape:
            what = f"array {self.inputs!r} holds {x.dtype} of shape {x.shape}"
            raise DataError(f"{path}: {what}; inputs are numbers (n, ...), a row for each example")
        width = math.prod(x.shape[1:])
        if width > _WIDEST:
            raise DataError(f"{path}: array {self.inputs!r} has {width} numbers a row, more than {_WIDEST}")
        parts, predictions = self._parts(arrays), None
        if self.predictions is not None:
            part, given = f"array {self.predictions!r}", arrays[self.predictions]
            if given.ndim == 1:
                predictions = predictions_in(path, part, self._column(arrays, self.predictions), parts)
            else:
                predictions = _scores(path, part, given, (len(x), parts.task.outputs))
        _check_finite(path, self.inputs, x)
        with path.open("rb") as stream:
            sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
        dtype = np.float64 if _blurred(x, parts) else np.float32
        spec = InputSpec(x.shape[1:])
        return Contents(**vars(parts), sha256=sha256, x=x, input=spec, predictions=predictions, dtype=dtype)

    def _arrays(self) -> dict[str, Array]:
        names = [self.inputs, self.labels, self.domain, self.groups, self.predictions]
        given = [name for name in names if name is not None]
        twice = [name for name in given if given.count(name) > 1]
        if twice:
            what = f"array {twice[0]!r} cannot be two of inputs, labels, domains, groups and predictions"
            raise DataError(f"{self.file}: {what}")
        return read_arrays(Path(self.file), given)

    def _parts(self, arrays: Mapping[str, Array]) -> Parts:
        domain, label = self._column(arrays, self.domain), self._column(arrays, self.labels)
        group = None if self.groups is None else self._column(arrays, self.groups)
        names = (f"domain (array {self.domain!r})", f"label (array {self.labels!r})", f"group (array {self.groups!r})")
        gaps = domain.gaps | label.gaps | (group.gaps if group is not None else frozenset())
        roles = Roles(Path(self.file), domain, label, group, names, gaps)
        return parts_of(roles, leave_out=self.leave_out, unlabelled=self.unlabelled, mode=self.mode)

    def _column(self, arrays: Mapping[str, Array], name: str) -> Column:
        """An array of labels, domains or groups as a column of texts; NaN and empty texts are missing."""
        values, rows = arrays[name], len(arrays[self.inputs]) if arrays[self.inputs].ndim else 0
        if values.shape != (rows,) or values.dtype.kind not in "iubfUS":
            what = f"array {name!r} holds {values.dtype} of shape {values.shape}"
            raise DataError(f"{self.file}: {what}; whole numbers or texts of shape ({rows},) are needed")
        different, codes = np.unique(values, return_inverse=True)
        try:
            texts = [text_of(value) for value in different.tolist()]
        except UnicodeDecodeError:
            raise DataError(f"{self.file}: array {name!r} holds bytes that are no UTF-8 text; save texts") from None
        return Column.of(texts, codes.reshape(-1).astype(np.int64), self.missing)

    def identify(self, path: Path, sha256: str) -> Identified | None:
        """None for what is no archive of arrays.

        Raises:
            DataError: it is one, whose domains and labels must be named: a line names its arrays.
        """
        if path.suffix.lower() != ".npz":
            return None
        held = listed(names_in(path))
        raise DataError(f"{path}: name the arrays of domains and labels by --domain and --label; it has {held}")

    def identify_columns(self, path: Path, columns: Mapping[str, str]) -> Identified | None:
        """Looks through an archive: its domains and classes; the inputs are `x`, or the only other array.

        Raises:
            DataError: the file cannot be used, or has no inputs that are clear.
        """
        if path.suffix.lower() != ".npz":
            return None
        if "text" in columns:
            raise DataError(f"{path}: arrays have no column of text; leave --text out, or save a table")
        given = given_by(columns)
        given |= {name: given.pop(role) for role, name in (("label", "labels"), ("group", "groups")) if role in given}
        others = [name for name in names_in(path) if name not in given.values()]
        if self.inputs not in others and len(others) != 1:
            held = listed(others) or "no other"
            raise DataError(f"{path}: which array holds the inputs? call it {self.inputs!r}; it has {held}")
        given["inputs"] = self.inputs if self.inputs in others else others[0]
        data, more, notes = repaired(replace(self, file=str(path), **given), columns.get("unlabelled", "target"))
        return identified(data, given | more, notes)

    def fit(self, train: Mapping[str, Inputs]) -> Callable[[str, Inputs], Inputs]:
        """Learns means and variances from training rows."""
        arrays = cast("Mapping[str, Array]", train)
        pooled = [arrays[name] for name in list(arrays)[:-1] or list(arrays)]
        groups = {name: [rows] for name, rows in arrays.items()} if self.standardise == "domain" else {"": pooled}
        scales = {} if self.standardise == "none" else {name: _moments(parts) for name, parts in groups.items()}
        return functools.partial(_scaled, scales=scales)


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


def read_arrays(path: Path, names: Sequence[str]) -> dict[str, Array]:
    """The named arrays of an npz archive; those that are not compressed are mapped into memory.

    What an archive claims of sizes is checked before anything is read.

    Raises:
        DataError: it is no such archive, is damaged, lacks an array, holds Python objects, or unpacks to too much.
    """
    stamp(path)
    try:
        with path.open("rb") as stream, zipfile.ZipFile(stream) as archive:
            held = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
            for name in names:
                if name not in held:
                    raise DataError(f"{path}: no array {name!r}; it has {listed(held) or 'none'}")
            return {name: _array(path, name, stream, archive, held[name]) for name in names}
    except _DAMAGE as error:
        why = f"cannot be read ({plain(error)})" if zipfile.is_zipfile(path) else "is no npz archive"
        raise DataError(f"{path}: {why}; write it with numpy.savez") from None


def names_in(path: Path) -> list[str]:
    """The names of the arrays of an archive; a DataError if it is none."""
    stamp(path)
    try:
        with zipfile.ZipFile(path) as archive:
            return [name.removesuffix(".npy") for name in archive.namelist()]
    except _DAMAGE:
        raise DataError(f"{path}: is no npz archive; write it with numpy.savez") from None


def _array(path: Path, name: str, stream: IO[bytes], archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Array:
    stored = member.compress_type == zipfile.ZIP_STORED
    bomb = member.file_size > _SMALL and member.file_size > _RATIO * max(1, member.compress_size)
    if not stored and (member.file_size > _MOST or bomb):
        what = f"array {name!r} unpacks from {member.compress_size} to {member.file_size} bytes"
        raise DataError(f"{path}: {what}, too many; write it with numpy.savez, uncompressed")
    with archive.open(member) as content:
        version = np.lib.format.read_magic(content)
        if version not in _HEADERS:
            raise ValueError(f"array {name!r} has version {version} of numpy's format")
        shape, fortran, dtype = _HEADERS[version](content)
        offset, size = content.tell(), math.prod(shape) * dtype.itemsize
        if dtype.hasobject:
            raise DataError(f"{path}: array {name!r} holds Python objects, which are never read; save numbers or texts")
        if any(side < 0 for side in shape) or offset + size != member.file_size:
            raise ValueError(f"array {name!r} has {member.file_size - offset} bytes, its header says {size}")
        if stored and not fortran and size:
            while content.read(1 << 20):  # to its end, where zipfile compares the checksum
                pass
            stream.seek(member.header_offset + _LOCAL_HEADER - 4)
            names = sum(np.frombuffer(stream.read(4), "<u2").tolist())  # and extra fields, before the contents
            start = member.header_offset + _LOCAL_HEADER + names + offset
            return np.memmap(stream, dtype, "r", start, shape)
        content.seek(0)
        return cast("Array", np.lib.format.read_array(content, allow_pickle=False))


def _chunks(x: Array) -> Iterator[Array]:
    return (x[start : start + _ROWS] for start in range(0, len(x), _ROWS))


def _check_finite(path: Path, name: str, x: Array) -> None:
    """All in float32; a few rows in memory at a time."""
    for start, part in zip(range(0, len(x), _ROWS), _chunks(x), strict=True):
        with np.errstate(over="ignore"):
            fine = np.isfinite(part.astype(np.float32, copy=False)).reshape(len(part), -1).all(1)
        if not fine.all():
            row = start + int(np.argmin(fine))
            what = f"row {row} of array {name!r} holds a number that is not finite in float32"
            raise DataError(f"{path}: {what}; correct or remove the row")


def _blurred(x: Array, parts: Parts) -> bool:
    """Whether float32 would lose digits of inputs that standardising needs."""
    if np.can_cast(x.dtype, np.float32):
        return False
    return any(lost_in_float32(x[some]).any() for rows in parts.rows.values() for some in _chunks(rows))


class _Moments(NamedTuple):
    mean: Array
    deviation: Array


def _moments(parts: Sequence[Array]) -> _Moments:
    """The mean and standard deviation of each number over all rows, without a copy of them in double precision."""
    rows = sum(map(len, parts))
    chunks = [chunk for part in parts for chunk in _chunks(part)]
    mean = np.asarray(sum(chunk.sum(0, dtype=np.float64) for chunk in chunks)) / rows
    squares = np.asarray(sum(((chunk - mean) ** 2).sum(0) for chunk in chunks)) / rows
    first = chunks[0][0]
    constant = np.logical_and.reduce([(chunk == first).all(0) for chunk in chunks])
    return _Moments(np.where(constant, first, mean).astype(np.float64), np.where(constant, 1, np.sqrt(squares)))


def _scaled(domain: str, rows: Inputs, *, scales: Mapping[str, _Moments]) -> Inputs:
    x = cast("Array", rows)
    if not scales:
        return x
    mean, deviation = scales[domain if domain in scales else ""]
    made = np.empty(x.shape, np.float32)
    for start in range(0, len(x), _ROWS):
        made[start : start + _ROWS] = (x[start : start + _ROWS] - mean) / deviation
    return made
