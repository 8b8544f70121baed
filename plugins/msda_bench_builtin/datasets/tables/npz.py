"""Arrays by name: npz archives of numpy, Parquet files, and folders of either."""

from __future__ import annotations

import hashlib
import math
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from msda_bench.api import Array, DataError
from msda_bench_builtin.datasets.tables.folder import ARRAYS, PARQUET, arrays_in, parts_of, stamp
from msda_bench_builtin.datasets.tables.parquet import fields_in, read_columns, shape_in
from msda_bench_builtin.datasets.tables.texts import names_text
from msda_bench_builtin.datasets.unpacked import reading

_MOST = 1 << 31
"""The maximum size of a compressed array, unpacked, in bytes; one that is not compressed may have any."""
_SMALL, _RATIO = 1 << 26, 100
"""Above so many bytes an array that unpacks to so many times its size is taken for a bomb."""
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
"""By the version of numpy's format; a third is for names of fields, which no array here has."""
_SPARSE = {"format", "shape", "data"}
"""Arrays of each archive that `scipy.sparse.save_npz` writes."""
_REMEDY = "write it with numpy.savez"
_SIGNALS = len(("row", "channels", "time"))


def arrays_of(path: Path) -> list[str]:
    """The names of the arrays of an archive, or of the columns of a Parquet file; a DataError if it is neither."""
    stamp(path, arrays_in(path))
    return [*(fields_in(path) if path.suffix.lower() in PARQUET else _members(path))]


def shape_of(path: Path, name: str) -> tuple[tuple[int, ...], str] | None:
    """The shape of an array, and the kind of its dtype; None if it is none."""
    if path.suffix.lower() in PARQUET:
        return shape_in(path, name)
    try:
        member = _members(path)[name]
        with reading(path, "cannot be read"), zipfile.ZipFile(path) as archive, archive.open(member) as content:
            shape, dtype = _header(name, content)
    except DataError:
        return None
    return shape, dtype.kind


def shown_shape(path: Path, name: str) -> str:
    """An array that is not read, such as `session (240,)`."""
    found = shape_of(path, name)
    return f"{name} {str(found[0]).replace(' 0', ' ...') if found else '(no array)'}"


def read_arrays(path: Path, names: Sequence[str]) -> dict[str, Array]:
    """The named arrays of an npz archive, or columns of a Parquet file.

    Raises:
        DataError: it is no such archive, is damaged, lacks an array, or holds Python objects.
    """
    if path.suffix.lower() in PARQUET:
        return read_columns(path, names)
    held = _members(path)
    for name in names:
        if name not in held:
            raise DataError(f"{path}: no array {name!r}; it has {names_text(held) or 'none'}")
    with reading(path, "cannot be read", _REMEDY):
        for name in names:
            _check_size(path, name, held[name])
        with np.load(path, allow_pickle=False) as arrays:
            read = {name: arrays[name] for name in names}
        for name, array in read.items():
            if not isinstance(array, np.ndarray):
                raise TypeError(f"{name!r} is no array of numpy")  # a member of this name beside one with .npy
        return read


def joined(name: str, arrays: Mapping[Path, Array]) -> Array:
    """The arrays of several files, one below the other; shorter signals get NaN after their ends."""
    first, *_ = arrays
    like = arrays[first]
    shapes = np.array([array.shape[1:] for array in arrays.values() if array.ndim == like.ndim])
    differ: Array = np.flatnonzero(np.ptp(shapes, axis=0))
    # Time is longer than the axis of channels.
    is_signals = like.ndim == _SIGNALS and len(differ) == 1 and shapes.min(0)[differ[0]] > shapes[0, 1 - differ[0]]
    for path, array in arrays.items():
        same_kind = (array.dtype.kind in "US") == (like.dtype.kind in "US")
        same_shape = array.ndim == like.ndim > 0 and (is_signals or array.shape[1:] == like.shape[1:])
        if not same_kind or not same_shape:
            here, there = (f"{one.dtype} of shape {one.shape}" for one in (array, like))
            what = f"array {name!r} holds {here}, but in {first.name} {there}"
            raise DataError(f"{path}: {what}; save arrays that differ in their first size alone")
    if not is_signals:
        return np.concatenate([*arrays.values()])
    axis = int(differ[0]) + 1
    longest = int(shapes[:, axis - 1].max())
    return np.concatenate([padded(array, axis, longest) for array in arrays.values()])


def padded(array: Array, axis: int, length: int) -> Array:
    """Rows whose axis has this length: NaN at the end of shorter ones; of longer ones NaN at the end is cut."""
    missing = length - array.shape[axis]
    if missing > 0:
        widths = [(0, missing if place == axis else 0) for place in range(array.ndim)]
        numbers = array if array.dtype.kind == "f" else array.astype(np.float32)
        return np.pad(numbers, widths, constant_values=np.nan)
    kept, rest = np.split(array, [length], axis=axis)
    return kept if array.dtype.kind == "f" and np.isnan(rest).all() else array


def sha256_of(path: Path) -> str:
    """Of a file; of a folder as `sha256sum` would list its files."""
    if not path.is_dir():
        return _digest(path)
    lines = [f"{_digest(part.path)}  {part.name}\n" for part in parts_of(path, arrays_in(path))]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _members(path: Path) -> dict[str, zipfile.ZipInfo]:
    """The arrays of an archive by name; a DataError if it is none."""
    stamp(path, ARRAYS)
    if not zipfile.is_zipfile(path):
        raise DataError(f"{path}: is no npz archive; {_REMEDY}")
    with reading(path, "cannot be read", _REMEDY), zipfile.ZipFile(path) as archive:
        held = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
    if held.keys() >= _SPARSE:
        remedy = "write numpy.savez(FILE, x=matrix.toarray(), y=labels, domain=domains)"
        raise DataError(f"{path}: is a sparse matrix of scipy alone, without labels and domains; {remedy}")
    return held


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
