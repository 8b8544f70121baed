"""Reads the archive of MNIST-M: folders of PNG files, and a list `file label` for each; torchvision has none."""

from __future__ import annotations

import io
import tarfile
import zlib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

import numpy as np

from msda_bench.api import Array, DataError
from msda_bench_builtin.datasets.digits.part import SIDE, Part, digits
from msda_bench_builtin.datasets.unpacked import tar_gz

_LARGEST = {".png": 100_000, ".txt": 10_000_000}
"""The maximum size of a file in the archive, in bytes."""
_MOST = 1 << 30
"""The maximum number of unpacked bytes; the original has a quarter of that."""


def read_mnist_m(path: Path) -> tuple[Part, Part]:
    """The training and the test part, in the order of the lists; nothing is written to disk.

    Raises:
        DataError: the archive is damaged or holds something else.
    """
    contents = _contents(path)
    train, test = (_part(contents, f"mnist_m/mnist_m_{part}", path) for part in ("train", "test"))
    return train, test


def _part(contents: Mapping[str, bytes], folder: str, path: Path) -> Part:
    names, labels = _listed(contents, f"{folder}_labels.txt", path)
    images = np.empty((len(names), 3, SIDE, SIDE), np.uint8)
    for i, name in enumerate(names):
        images[i] = _image(contents, f"{folder}/{name}", path)
    return Part(images, digits(labels, f"{path}: {folder}_labels.txt"))


def _contents(path: Path) -> dict[str, bytes]:
    try:
        with tar_gz(path, _MOST) as archive:
            return {member.name: _bytes(archive, member) for member in archive if _wanted(member, path)}
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


def _bytes(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    stream = archive.extractfile(member)
    return b"" if stream is None else stream.read()


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
