"""Reads numpy's archives of arrays, but never Python objects."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from msda_bench.api import Array, DataError

_MOST = 1 << 31
"""The maximum size of all arrays of an archive in bytes; zipfile reads no more of a member than its archive claims."""
_DAMAGE = (
    OSError,
    EOFError,
    ValueError,
    MemoryError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
)
"""Exceptions of zipfile and numpy for archives that are truncated, damaged, encrypted, or hold forbidden contents."""


def read_npz(path: Path, names: Sequence[str]) -> dict[str, Array]:
    """The named arrays of an archive written by `numpy.savez`.

    Raises:
        DataError: it is not such an archive, is damaged, does not have an array, or holds one of Python objects.
    """
    if not zipfile.is_zipfile(path):
        raise DataError(f"{path}: is not a complete npz archive; write it with numpy.savez")
    try:
        _check_size(path)
        # Opened here, since numpy leaves a file open if it cannot parse it.
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            held = tuple(archive.files)
            arrays = {name: archive[name] for name in names if name in held}
    except _DAMAGE as error:
        raise DataError(f"{path}: cannot be read ({_reason(error)}); write it again with numpy.savez") from error
    # For a member without an array's header numpy returns the bytes.
    missing = [name for name in names if not isinstance(arrays.get(name), np.ndarray)]
    if missing:
        raise DataError(f"{path}: has no array {' or '.join(missing)}; it holds {', '.join(held) or 'nothing'}")
    return arrays


def _check_size(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        size = sum(member.file_size for member in archive.infolist())
    if size > _MOST:
        raise ValueError(f"it unpacks to {size} bytes, more than {_MOST}")


def _reason(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
