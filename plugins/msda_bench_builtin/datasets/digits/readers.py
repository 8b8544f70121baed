"""Reads the files of digits: idx files of MNIST, MATLAB files of SVHN, the archive of MNIST-M, and text of USPS.

What was published with a checksum is read only if it has it, so that only MATLAB files, which users supply, too, are
looked at in detail. torchvision is not used: it has no MNIST-M, reads only unpacked files of MNIST and none but SVHN's
own, and truncates values of USPS where this rounds them.
"""

from __future__ import annotations

import io
import math
import struct
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from msda_bench.api import Array, DataError, DomainData
from msda_bench_builtin.datasets.unpacked import reading, unpacked

SIDE = 32
"""The side of an image in pixels."""
CLASSES = 10
_MOST_MAT = 1 << 31
"""The maximum number of bytes of the arrays of a file; those of Synthetic Digits have 1.5 thousand million."""
_BYTES = {"int8": 1, "uint8": 1, "logical": 1, "char": 4, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "single": 4}
"""Bytes of a number of MATLAB's classes, 8 for others."""
_USPS_SIDE = 16


@dataclass(frozen=True, eq=False)
class Part:
    """The training or the test part of a domain: images (n, 3, 32, 32) uint8 and digits (n,) int64."""

    x: Array
    y: Array


def joined_parts(train: Part, test: Part) -> DomainData:
    """Both parts as one domain, the test part marked."""
    is_test = np.repeat([False, True], [len(train.y), len(test.y)])
    if train.x.strides[1] == test.x.strides[1] == 0:  # grey: the three channels keep sharing their memory
        x = colours(np.concatenate([train.x[:, 0], test.x[:, 0]]))
    else:
        x = np.concatenate([train.x, test.x])
    y = np.concatenate([train.y, test.y])
    return DomainData(x, y, is_test)


def colours(grey: Array) -> Array:
    """Grey images (n, 32, 32) as (n, 3, 32, 32), without copying them."""
    return np.broadcast_to(grey[:, None], (len(grey), 3, *grey.shape[1:]))


def digits(labels: Array, where: object, first: int = 0, last: int = CLASSES - 1) -> Array:
    """Whole numbers (n,) from `first` to `last` as int64; a DataError names the first other one and `where` it is."""
    wrong = np.flatnonzero((labels < first) | (labels > last) | (labels != np.floor(labels)))
    if len(wrong):
        at = int(wrong[0])
        raise DataError(f"{where}: label {labels[at]:g} of image {at} is not one of {first}..{last}; replace the file")
    return labels.astype(np.int64)


_AT_ONCE = 4096


def enlarge(images: Array) -> Array:
    """Smaller images (n, side, side) as (n, 32, 32) uint8, each pixel a bilinear mean of four; Pillow's up to rounding.

    From 28 or 16 to 32 pixels all weights are sixteenths, so that float32 holds every sum exactly and every machine
    gives the same result.
    """
    side = images.shape[1]
    # The shares of the old pixels in each new one, pixels being squares and not points.
    middles = (np.arange(SIDE) + 0.5) * side / SIDE - 0.5
    inside = np.clip(middles, 0, side - 1)
    distances = abs(inside[:, None] - np.arange(side))
    weights = np.maximum(1 - distances, 0).astype(np.float32)
    larger = np.empty((len(images), SIDE, SIDE), np.uint8)
    for start in range(0, len(images), _AT_ONCE):
        some = images[start : start + _AT_ONCE].astype(np.float32)
        larger[start : start + _AT_ONCE] = np.rint(weights @ some @ weights.T)
    return larger


def read_mnist(images: Path, labels: Path) -> Part:
    """Digits of MNIST, enlarged to 32 x 32.

    Raises:
        DataError: the files have another format.
    """
    grey = _read_idx(images, 3)
    classes = digits(_read_idx(labels, 1), labels)
    return Part(colours(enlarge(grey)), classes)


def _read_idx(path: Path, dimensions: int) -> Array:
    """The array (uint8, read-only) of an idx file, gzipped or not: a magic number, sizes as big-endian int32, bytes."""
    with reading(path, "not a whole file"), unpacked(path) as stream:
        content = stream.read()
        shape = struct.unpack_from(f">{dimensions}I", content, 4)
        return np.frombuffer(content, np.uint8, offset=4 + 4 * dimensions).reshape(shape)


def read_mat(path: Path, *, zero: int | None) -> Part:
    """Images `X` (32, 32, 3, n) and labels `y` (n, 1) of MATLAB's version 5 format.

    The digit 0 must have the label `zero`, as in SVHN; if that is None, it may have 0 or 10. The images are a view of
    the array read, since Synthetic Digits take 1.5 GB.

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

    with reading(path, "not a whole MATLAB file"):
        _check_size(path, names)
        # The reader only builds arrays: MATLAB's format holds no code, and needs no pickle.
        arrays = loadmat(path, variable_names=names)
    for name in names:
        if not isinstance(arrays.get(name), np.ndarray):
            raise DataError(f"{path}: holds no array {name!r}; replace the file")
    return [arrays[name] for name in names]


def _check_size(path: Path, names: Sequence[str]) -> None:
    from scipy.io import whosmat

    size = 0
    for name, shape, kind in whosmat(path):
        if name in names:
            size += math.prod(shape) * _BYTES.get(kind, 8)
    if size > _MOST_MAT:
        raise ValueError(f"it claims {size} bytes, more than {_MOST_MAT}")


def read_mnist_m(path: Path) -> tuple[Part, Part]:
    """The training and the test part: PNG files in the order of lists `file label`; nothing is written to disk.

    Raises:
        DataError: the archive is damaged or holds something else.
    """
    with reading(path, "not the expected archive"), tarfile.open(path) as archive:
        contents: dict[str, bytes] = {}
        for member in archive:
            stream = archive.extractfile(member)
            if stream is not None:
                contents[member.name] = stream.read()
        train = _mnist_m_part(contents, "mnist_m/mnist_m_train")
        test = _mnist_m_part(contents, "mnist_m/mnist_m_test")
        return train, test


def _mnist_m_part(contents: Mapping[str, bytes], folder: str) -> Part:
    from PIL import Image

    text = contents[f"{folder}_labels.txt"].decode("ascii")
    lines = [line.split() for line in text.splitlines()]
    images = np.empty((len(lines), 3, SIDE, SIDE), np.uint8)
    for place, (name, _) in enumerate(lines):
        content = io.BytesIO(contents[f"{folder}/{name}"])
        with Image.open(content, formats=["PNG"]) as image:
            images[place] = np.asarray(image).transpose(2, 0, 1)
    labels = np.array([int(label) for _, label in lines])
    return Part(images, digits(labels, folder))


def read_usps(path: Path) -> Part:
    """Digits of USPS as LIBSVM publishes it: bzip2 of lines `label 1:value ... 256:value`, where zeros may be missing.

    They are enlarged to 32 x 32; values -1..1 become 0..255, label 1 is the digit 0.

    Raises:
        DataError: the file has other contents.
    """
    with reading(path, "not the expected lines"), unpacked(path) as stream:
        lines = [line.replace(b":", b" ").split() for line in stream.read().splitlines()]
        values = np.zeros((len(lines), _USPS_SIDE * _USPS_SIDE))
        for row, (_, *pairs) in enumerate(lines):
            places = np.array(pairs[0::2], np.int64) - 1
            values[row, places] = np.array(pairs[1::2], np.float64)
        labels = np.array([float(label) for label, *_ in lines])
    grey = np.rint((values + 1) / 2 * 255).astype(np.uint8)
    images = grey.reshape(-1, _USPS_SIDE, _USPS_SIDE)
    classes = digits(labels, path, 1, CLASSES) - 1
    return Part(colours(enlarge(images)), classes)
