"""Reads the files of digits: idx files of MNIST, MATLAB files of SVHN, the archive of MNIST-M, and text of USPS.

torchvision is not used. Its reader of idx takes only unpacked files, sets no limit on their size, and asserts without a
message. Its `SVHN` reads only files with SVHN's own names and md5, so neither a reduced copy nor Synthetic Digits, and
does not check the contents. Its `USPS` ignores the indices, truncates values where this rounds them, and sets no size
limit. It has no MNIST-M.
"""

from __future__ import annotations

import bz2
import gzip
import io
import math
import struct
import tarfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, cast

import numpy as np

from msda_bench.api import Array, DataError, DomainData
from msda_bench_builtin.datasets.unpacked import Limited, tar_gz

SIDE = 32
"""The side of an image in pixels."""
CLASSES = 10
_GZIP = b"\x1f\x8b"
_UNSIGNED = 0x08
"""The code of unsigned bytes in a magic number."""
_MNIST_SIDE = 28
_MOST = 1 << 28
"""The maximum number of unpacked bytes of a file of MNIST, of which the largest has 47 million, or of USPS."""
_MOST_MAT = 1 << 31
"""The maximum number of bytes of the arrays of a file; those of Synthetic Digits have 1.5 thousand million."""
_BYTES = {"int8": 1, "uint8": 1, "logical": 1, "char": 4, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "single": 4}
"""Bytes of a number of MATLAB's classes, 8 for others."""
_LARGEST = {".png": 100_000, ".txt": 10_000_000}
"""The maximum size of a file in the archive, in bytes."""
_MOST_TAR = 1 << 30
"""The maximum number of unpacked bytes; the original has a quarter of that."""
_USPS_SIDE = 16
_PLACES = range(1, _USPS_SIDE * _USPS_SIDE + 1)


@dataclass(frozen=True, eq=False)
class Part:
    """The training or the test part of a domain: images (n, 3, 32, 32) uint8 and digits (n,) int64."""

    x: Array
    y: Array


def whole(train: Part, test: Part) -> DomainData:
    """Both parts as one domain, the test part marked."""
    official = np.arange(len(train.y) + len(test.y)) >= len(train.y)
    if train.x.strides[1] == test.x.strides[1] == 0:  # grey: the three channels keep sharing their memory
        x = colours(np.concatenate([train.x[:, 0], test.x[:, 0]]))
    else:
        x = np.concatenate([train.x, test.x])
    return DomainData(x, np.concatenate([train.y, test.y]), official)


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
    at = np.clip((np.arange(SIDE) + 0.5) * side / SIDE - 0.5, 0, side - 1)
    weights = np.maximum(1 - abs(at[:, None] - np.arange(side)), 0).astype(np.float32)
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
    grey, numbers = read_idx(images, 3), read_idx(labels, 1)
    if grey.shape[1:] != (_MNIST_SIDE, _MNIST_SIDE):
        height, width = grey.shape[1:]
        raise DataError(f"{images}: images of {height}x{width} pixels, expected 28x28; replace the file")
    if len(grey) != len(numbers):
        raise DataError(f"{labels}: {len(numbers)} labels for {len(grey)} images; replace the file")
    return Part(colours(enlarge(grey)), digits(numbers, labels))


def read_idx(path: Path, dimensions: int) -> Array:
    """The array (uint8, read-only) of an idx file, gzipped or not: a magic number, sizes as big-endian int32, bytes.

    Raises:
        DataError: the file has other contents.
    """
    content = _unpacked(path)
    head = 4 + 4 * dimensions
    magic = content[:4]
    if magic != bytes([0, 0, _UNSIGNED, dimensions]):
        expected = f"0000{_UNSIGNED:02x}{dimensions:02x}"
        raise DataError(f"{path}: magic number {magic.hex() or 'missing'}, expected {expected}; replace the file")
    if len(content) < head:
        raise DataError(f"{path}: truncated within its {head} bytes of head; replace the file")
    shape = struct.unpack(f">{dimensions}I", content[4:head])
    if len(content) != head + math.prod(shape):
        raise DataError(f"{path}: {len(content) - head} bytes of data, expected {math.prod(shape)}; replace the file")
    return np.frombuffer(content, np.uint8, offset=head).reshape(shape)


def _unpacked(path: Path) -> bytes:
    with path.open("rb") as stream:
        if stream.read(len(_GZIP)) != _GZIP:
            return path.read_bytes()
    try:
        with gzip.open(path) as packed:
            return Limited(packed, _MOST).read()
    except (EOFError, OSError, zlib.error) as error:
        raise DataError(f"{path}: not a whole gzip file: {error}; replace the file") from None


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
    if size > _MOST_MAT:
        raise ValueError(f"it claims {size} bytes, more than {_MOST_MAT}")


def read_mnist_m(path: Path) -> tuple[Part, Part]:
    """The training and the test part: PNG files in the order of lists `file label`; nothing is written to disk.

    Raises:
        DataError: the archive is damaged or holds something else.
    """
    contents = _contents(path)
    train, test = (_mnist_m_part(contents, f"mnist_m/mnist_m_{part}", path) for part in ("train", "test"))
    return train, test


def _mnist_m_part(contents: Mapping[str, bytes], folder: str, path: Path) -> Part:
    names, labels = _listed(contents, f"{folder}_labels.txt", path)
    images = np.empty((len(names), 3, SIDE, SIDE), np.uint8)
    for i, name in enumerate(names):
        images[i] = _image(contents, f"{folder}/{name}", path)
    return Part(images, digits(labels, f"{path}: {folder}_labels.txt"))


def _contents(path: Path) -> dict[str, bytes]:
    try:
        with tar_gz(path, _MOST_TAR) as archive:
            wanted = (member for member in archive if _wanted(member, path))
            return {member.name: cast("IO[bytes]", archive.extractfile(member)).read() for member in wanted}
    except (tarfile.TarError, EOFError, OSError, ValueError, zlib.error) as error:
        raise DataError(f"{path}: not a whole tar.gz archive: {error}; replace the file") from None


def _wanted(member: tarfile.TarInfo, path: Path) -> bool:
    """Whether a member may be an image or a list; refuses malicious members, although none is unpacked."""
    name = PurePosixPath(member.name)
    if name.is_absolute() or ".." in name.parts:
        raise DataError(f"{path}: member {member.name!r} leads out of the archive; replace the file")
    if not member.isreg() and not member.isdir():
        raise DataError(f"{path}: member {member.name!r} is not a plain file; replace the file")
    if member.size > _LARGEST.get(name.suffix, member.size):
        raise DataError(f"{path}: member {member.name!r} is too large, {member.size} bytes; replace the file")
    return member.isreg() and name.suffix in _LARGEST


def _listed(contents: Mapping[str, bytes], name: str, path: Path) -> tuple[list[str], Array]:
    if name not in contents:
        raise DataError(f"{path}: holds no {name}; replace the file")
    names, labels = [], []
    for number, line in enumerate(contents[name].splitlines(), 1):
        words = line.decode("ascii", "replace").split()
        if len(words) != len(("file", "label")) or not words[1].isdecimal():
            raise DataError(f"{path}: {name}:{number}: not the name of a file and a label; replace the file")
        names.append(words[0])
        labels.append(min(int(words[1]), 1 << 30))
    return names, np.array(labels, np.int64)


def _image(contents: Mapping[str, bytes], name: str, path: Path) -> Array:
    from PIL import Image

    if name not in contents:
        raise DataError(f"{path}: {name} is listed but not there; replace the file")
    try:
        with Image.open(io.BytesIO(contents[name]), formats=["PNG"]) as image:
            kind = f"{image.mode} {image.width}x{image.height}"
            if kind != f"RGB {SIDE}x{SIDE}":
                raise DataError(f"{path}: {name} is {kind}, expected RGB 32x32; replace the file")
            return np.asarray(image).transpose(2, 0, 1)
    except (OSError, SyntaxError, ValueError, zlib.error, Image.DecompressionBombError) as error:
        raise DataError(f"{path}: {name} is not a PNG image: {str(error)[:200]}; replace the file") from None


def read_usps(path: Path) -> Part:
    """Digits of USPS as LIBSVM publishes it: bzip2 of lines `label 1:value ... 256:value`.

    They are enlarged to 32 x 32; values -1..1 become 0..255, label 1 is the digit 0.

    Raises:
        DataError: the file has other contents; reports the line.
    """
    rows = [_row(line, f"{path}:{number}") for number, line in enumerate(_lines(path), 1)]
    if not rows:
        raise DataError(f"{path}: holds no images; replace the file")
    table = np.stack(rows)
    labels = digits(table[:, 0], path, 1, CLASSES) - 1
    grey = np.rint((table[:, 1:] + 1) / 2 * 255).astype(np.uint8).reshape(-1, _USPS_SIDE, _USPS_SIDE)
    return Part(colours(enlarge(grey)), labels)


def _lines(path: Path) -> list[bytes]:
    try:
        with bz2.open(path) as stream:
            return Limited(stream, _MOST).read().splitlines()
    except (EOFError, OSError, ValueError) as error:
        raise DataError(f"{path}: not a whole bzip2 file: {error}; replace the file") from None


def _row(line: bytes, where: str) -> Array:
    """(257,) float64: the label, then the values; omitted ones are 0, as in the format."""
    row = np.zeros(1 + _USPS_SIDE * _USPS_SIDE)
    try:
        numbers = np.array(line.replace(b":", b" ").split(), np.float64)
    except ValueError:
        numbers = np.empty(0)
    places, values = numbers[1::2], numbers[2::2]
    paired = len(numbers) == 1 + 2 * line.count(b":")
    if not (paired and np.isin(places, _PLACES).all() and (abs(values) <= 1).all()):
        what = "not a label and pairs `index:value`, of index 1..256 and value -1..1"
        raise DataError(f"{where}: {what}; replace the file")
    row[0], row[places.astype(np.int64)] = numbers[0], values
    return row
