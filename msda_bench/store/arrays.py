"""Arrays stored with a record: predictions, features and weights of a run, each an npz file without pickle.

<key>.<name>-<first 16 digits of its sha256>.npz, named by its contents, so that no two runs write the same file.
"""

from __future__ import annotations

import hashlib
import io
import re
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from msda_bench.atomic import named, read_file, write
from msda_bench.errors import StoreError
from msda_bench.store.record import Record

ARRAYS_LIMIT = 1 << 34
"""The maximum size of a file of arrays in bytes."""
_NAME = re.compile(r"(?P<key>[0-9a-f]{64})\.(?P<what>predictions|features|weights)-[0-9a-f]{16}\.npz")


def pack(arrays: Mapping[str, NDArray[np.generic]]) -> bytes:
    """The file of some arrays by name."""
    stream = io.BytesIO()
    np.savez_compressed(stream, allow_pickle=False, **arrays)
    return stream.getvalue()


def digest(data: bytes) -> str:
    """The sha256 of a file, for its record."""
    return hashlib.sha256(data).hexdigest()


def arrays_path(record_path: Path, name: str, sha256: str) -> Path:
    """The path of the file, next to its record."""
    return record_path.with_name(f"{record_path.stem}.{name}-{sha256[:16]}.npz")


def key_of_arrays(name: str) -> tuple[str, str] | None:
    """The key and the kind of arrays, such as predictions, from the name of a file; None for any other file."""
    found = _NAME.fullmatch(name)
    return (found["key"], found["what"]) if found else None


def write_arrays(record: Record, record_path: Path) -> None:
    """Writes a record's files before the record itself, so that a record is never without its files.

    Raises:
        OSError: a file cannot be written.
    """
    for name, data in record.arrays.items():
        write(arrays_path(record_path, name, record.saved[name]), data)


def read_bytes(record: Record, record_path: Path, name: str) -> bytes:
    """The bytes of one of a record's files.

    Raises:
        StoreError: it is missing, cannot be read, or is not the one that the record names.
    """
    path = arrays_path(record_path, name, record.saved[name])
    with named(path, "cannot be read"):
        data = read_file(path, ARRAYS_LIMIT)
    if digest(data) != record.saved[name]:
        raise StoreError(f"{path}: is damaged: it does not match the sha256 in its record")
    return data


def load_arrays(record: Record, record_path: Path, name: str) -> dict[str, NDArray[np.generic]]:
    """The arrays of one of a record's files, by name; raises as `read_bytes`."""
    data = read_bytes(record, record_path, name)
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as found:
            return {each: found[each] for each in found.files}
    except (ValueError, OSError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise StoreError(f"{arrays_path(record_path, name, record.saved[name])}: not an npz file: {error}") from error
