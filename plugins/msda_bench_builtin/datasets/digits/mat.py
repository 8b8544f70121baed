"""Reads MATLAB files of images: `X` (32, 32, 3, n) bytes and `y` (n, 1) labels, the format of SVHN.

scipy reads them. torchvision's `SVHN` reads only files with SVHN's own names and md5, so neither a reduced copy nor
Synthetic Digits, and does not check the contents.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from msda_bench.api import Array, DataError
from msda_bench_builtin.datasets.digits.part import CLASSES, SIDE, Part, digits

_MOST = 1 << 31
"""The maximum number of bytes of the arrays of a file; those of Synthetic Digits have 1.5 thousand million."""
_BYTES = {"int8": 1, "uint8": 1, "logical": 1, "char": 4, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "single": 4}
"""Bytes of a number of MATLAB's classes, 8 for others."""


def read_mat(path: Path, *, zero: int | None) -> Part:
    """Images and labels.

    Args:
        path: a file of MATLAB's version 5 format.
        zero: 10 if the digit 0 must have the label 10, as in SVHN; None if it may have 0 or 10.

    Returns:
        The images as a view of the array read, since Synthetic Digits take 1.5 GB.

    Raises:
        DataError: the file is damaged or holds something else.
    """
    images, labels = read_arrays(path, "X", "y")
    if images.dtype != np.uint8 or images.ndim != 4 or images.shape[:3] != (SIDE, SIDE, 3):  # noqa: PLR2004
        raise DataError(
            f"{path}: X is {images.dtype} {images.shape}, expected uint8 (32, 32, 3, images); replace the file"
        )
    if labels.dtype.kind not in "fiu" or labels.size != images.shape[3]:
        raise DataError(
            f"{path}: y is {labels.dtype} {labels.shape}, expected {images.shape[3]} labels; replace the file"
        )
    classes = digits(labels.ravel(), path, 0 if zero is None else 1, CLASSES)
    return Part(images.transpose(3, 2, 0, 1), classes % CLASSES)


def read_arrays(path: Path, *names: str) -> list[Array]:
    """Arrays of a MATLAB file, by name.

    Raises:
        DataError: the file is damaged, or has no such array.
    """
    from scipy.io import loadmat

    try:
        _check_size(path, names)
        # The reader only builds arrays: MATLAB's format holds no code, and needs no pickle.
        arrays = loadmat(path, variable_names=names)
    except Exception as error:  # noqa: BLE001 - scipy may raise anything on a damaged file
        why = " ".join(str(error).split()) or type(error).__name__
        raise DataError(f"{path}: not a whole MATLAB file: {why[:200]}; replace the file") from None
    for name in names:
        if not isinstance(arrays.get(name), np.ndarray):
            raise DataError(f"{path}: holds no array {name!r}; replace the file")
    return [arrays[name] for name in names]


def _check_size(path: Path, names: Sequence[str]) -> None:
    from scipy.io import whosmat

    size = sum(math.prod(shape) * _BYTES.get(kind, 8) for name, shape, kind in whosmat(path) if name in names)
    if size > _MOST:
        raise ValueError(f"it claims {size} bytes, more than {_MOST}")
