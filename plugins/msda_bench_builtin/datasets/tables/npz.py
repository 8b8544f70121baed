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
    held = fields_in(path) if _is_parquet(path) else _members(path)
    return [*held]


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() in PARQUET


def shape_of(path: Path, name: str) -> tuple[tuple[int, ...], str] | None:
    """The shape of an array, and the kind of its dtype; None if it is none."""
    if _is_parquet(path):
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
    if found is None:
        return f"{name} (no array)"
    shape = str(found[0]).replace(" 0", " ...")
    return f"{name} {shape}"


def read_arrays(path: Path, names: Sequence[str]) -> dict[str, Array]:
    """The named arrays of an npz archive, or columns of a Parquet file.

    Raises:
        DataError: it is no such archive, is damaged, lacks an array, or holds Python objects.
    """
    if _is_parquet(path):
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
    time = _time_axis(shapes) if like.ndim == _SIGNALS else None
    for path, array in arrays.items():
        same_kind = (array.dtype.kind in "US") == (like.dtype.kind in "US")
        same_shape = time is not None or array.shape[1:] == like.shape[1:]
        if not same_kind or not same_shape or not array.ndim == like.ndim > 0:
            here = f"{array.dtype} of shape {array.shape}"
            there = f"{like.dtype} of shape {like.shape}"
            what = f"array {name!r} holds {here}, but in {first.name} {there}"
            raise DataError(f"{path}: {what}; save arrays that differ in their first size alone")
    if time is None:
        return np.concatenate([*arrays.values()])
    longest = int(shapes[:, time].max())
    return np.concatenate([padded(array, time + 1, longest) for array in arrays.values()])


def _time_axis(shapes: Array) -> int | None:
    """The one of two axes (files, 2) that differs between files, if it is longer than the other in all; or None."""
    differ = np.flatnonzero(np.ptp(shapes, axis=0))
    if len(differ) != 1:
        return None
    time = int(differ[0])
    return time if shapes[:, time].min() > shapes[0, 1 - time] else None


def padded(array: Array, axis: int, length: int) -> Array:
    """Rows whose axis has this length: NaN at the end of shorter ones; of longer ones NaN at the end is cut."""
    missing = length - array.shape[axis]
    if missing > 0:
        widths = [(0, 0)] * array.ndim
        widths[axis] = (0, missing)
        numbers = array if array.dtype.kind == "f" else array.astype(np.float32)
        return np.pad(numbers, widths, constant_values=np.nan)
    kept, rest = np.split(array, [length], axis=axis)
    is_padding = array.dtype.kind == "f" and np.isnan(rest).all()
    return kept if is_padding else array


def sha256_of(path: Path) -> str:
    """The checksum of a file; for a folder, that of the list which `sha256sum` prints of its files."""
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
    unpacked = member.file_size
    packed = member.compress_size
    stored = member.compress_type == zipfile.ZIP_STORED
    bomb = unpacked > _SMALL and unpacked > _RATIO * max(1, packed)
    if not stored and (unpacked > _MOST or bomb):
        what = f"array {name!r} unpacks from {packed} to {unpacked} bytes"
        raise DataError(f"{path}: {what}, too many; write it with numpy.savez, uncompressed")
    with zipfile.ZipFile(path) as archive, archive.open(member) as content:
        shape, dtype = _header(name, content)
        held = unpacked - content.tell()
    if dtype.hasobject:
        what = f"array {name!r} holds Python objects, which are never read"
        raise DataError(f"{path}: {what}; save numbers, or texts by astype(str) (of a sparse matrix its toarray())")
    said = math.prod(shape) * dtype.itemsize
    if any(side < 0 for side in shape) or said != held:
        raise ValueError(f"array {name!r} has {held} bytes, its header says {said}")


def _header(name: str, content: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = np.lib.format.read_magic(content)
    if version not in _HEADERS:
        raise ValueError(f"array {name!r} has version {version} of numpy's format")
    shape, _, dtype = _HEADERS[version](content)
    return shape, dtype
