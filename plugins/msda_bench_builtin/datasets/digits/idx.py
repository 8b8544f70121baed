"""Reads idx files of bytes, the format of MNIST: a magic number, the sizes as big-endian int32, then the data.

torchvision's reader is not used: it takes only unpacked files, sets no limit on their size, and asserts without a
message.
"""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from pathlib import Path

import numpy as np

from msda_bench.api import Array, DataError
from msda_bench_builtin.datasets.digits.part import SIDE, Part, colours, digits, enlarge
from msda_bench_builtin.datasets.unpacked import read_limited

_GZIP = b"\x1f\x8b"
_BYTES = 0x08
"""The code of unsigned bytes in a magic number."""
_MNIST_SIDE = 28
_MOST = 1 << 28
"""The maximum number of unpacked bytes; the largest file of MNIST has 47 million."""


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
    return Part(colours(enlarge(grey, SIDE)), digits(numbers, labels))


def read_idx(path: Path, dimensions: int) -> Array:
    """The array of an idx file, gzipped or not.

    Args:
        path: the file.
        dimensions: the expected number of sizes.

    Returns:
        uint8, read-only.

    Raises:
        DataError: the file has other contents.
    """
    content = _unpacked(path)
    head = 4 + 4 * dimensions
    magic = content[:4]
    if magic != bytes([0, 0, _BYTES, dimensions]):
        expected = f"0000{_BYTES:02x}{dimensions:02x}"
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
            return read_limited(packed, _MOST)
    except (EOFError, OSError, zlib.error) as error:
        raise DataError(f"{path}: not a whole gzip file: {error}; replace the file") from None
