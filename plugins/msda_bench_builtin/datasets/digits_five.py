"""Digits-Five, as the authors of M3SDA made it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from msda_bench.api import (
    Array,
    ByHand,
    DataError,
    DomainData,
    File,
    Files,
    Identified,
    Inputs,
    InputSpec,
    Size,
    Task,
    TestSize,
    component,
)
from msda_bench_builtin.datasets.digits.dataset import scaled
from msda_bench_builtin.datasets.digits.readers import (
    CLASSES,
    SIDE,
    Part,
    colours,
    digits,
    enlarge,
    joined_parts,
    read_arrays,
    read_mat,
)
from msda_bench_builtin.datasets.features import Published
from msda_bench_builtin.datasets.images.dataset import Sha256, first_suite

_TRAIN, _TEST = 25000, 9000
"""The number of first images of each part that M3SDA takes, if it does not draw them."""
_TIMES = 4
"""Copies of each training image of USPS."""


@component
class DigitsFive(Published):
    """M3SDA's digits from handwriting, blends with photographs, house numbers and fonts: colour images, 32 x 32.

    As in M3SDA's released loaders: of the training part 25000 images of MNIST, MNIST-M (their own, not Ganin's) and
    Synthetic Digits, the first 25000 of SVHN, and USPS four times over; of the test part 10000, the first 9000, 9000,
    the first 9000, and all. Numbers are truncated to whole ones, smaller images enlarged to 32 x 32 (bilinear), grey
    ones get three equal channels, and bytes are divided by 255. The images differ from those of `digits`, so results
    are not comparable. No checksum of the files was ever published and we have not seen them; their layout is the one
    that the loaders of M3SDA and of several later papers expect.

    Parameters:
        folder: the folder of the six MATLAB files below a data folder.
        sha256: the folder's checksum, as `msda-bench data identify FOLDER` prints it. Nothing is read without it.

    Peng, Bai, Xia, Huang, Saenko, Wang. Moment Matching for Multi-Source Domain Adaptation. ICCV 2019.
    """

    name = "digits_five"
    version = 1
    licence = "MNIST CC BY-SA 3.0; SVHN non-commercial use only; of the others none is stated"
    modality = "images"
    source = "Peng et al. 2019; files that you supply"
    task = Task("classification", CLASSES)
    input = InputSpec((3, SIDE, SIDE))
    published: ClassVar[Mapping[str, tuple[int, int]]] = {
        "mnist": (55000, 10000),
        "mnist_m": (55000, _TEST),
        "svhn": (_TRAIN, _TEST),
        "syn": (_TRAIN, _TEST),
        "usps": (_TIMES * 7438, 1860),
    }
    origin: ClassVar[ByHand] = ByHand("Digits-Five of M3SDA's authors, who published no checksum (docs/datasets.md)")

    train: Size = 25000
    test: TestSize = None
    folder: Annotated[str, Field(min_length=1, max_length=500)] = "digits_five"
    sha256: Sha256 | None = None

    @property
    def files(self) -> tuple[File, ...]:
        """The folder."""
        return (File(self.folder, self.sha256, None, self.origin),)

    def load(self, domain: str, files: Files) -> DomainData:
        """The domain's images (n, 3, 32, 32) uint8: the training part, then the test part."""
        return self._read(domain, files.path(self.files[0]))

    def fit(self, train: Mapping[str, Inputs]) -> Callable[[str, Inputs], Inputs]:
        """Learns nothing; returns the map of bytes to float32, so that images stay bytes until chosen."""
        return scaled

    def identify(self, path: Path, sha256: str, options: Mapping[str, str]) -> Identified | None:
        """Recognises a folder with most of the six files; reads each of them."""
        names = [name for _, *some in _PARTS.values() for name in some]
        here = [name for name in names if (path / name).is_file()]
        if options or len(here) <= len(names) / 2:
            return None
        lines = [f"missing: {name}" for name in names if name not in here]
        counts: dict[str, dict[str, int]] = {}
        for domain, (_, *some) in _PARTS.items():
            if not {*some} <= {*here}:
                continue
            try:
                labels = self._read(domain, path).y
            except DataError as error:
                lines.extend(f"bad: {line}" for line in error.lines)
            else:
                counts[domain] = {str(digit): int(count) for digit, count in enumerate(np.bincount(labels))}
        suite = {} if lines else first_suite(counts)
        params = {"folder": path.name, "sha256": sha256}
        return Identified(f"{len(here)} of {len(names)} files", counts, lines, params, suite)

    def _read(self, domain: str, folder: Path) -> DomainData:
        read, *names = _PARTS[domain]
        train, test = read(*(folder / name for name in names))
        sizes = len(train.y), len(test.y)
        if sizes != self.published[domain]:
            expected = " and ".join(map(str, self.published[domain]))
            what = f"{sizes[0]} training and {sizes[1]} test images, expected {expected}"
            raise DataError(f"{folder / names[0]}: {domain} has {what}; replace the file")
        return joined_parts(train, test)


def _mnist(path: Path) -> Iterator[Part]:
    for part in ("train", "test"):
        images, labels = read_arrays(path, f"{part}_32", f"label_{part}")
        yield Part(colours(_bytes(path, images, (SIDE, SIDE))), _one_hot(path, labels, len(images)))


def _mnist_m(path: Path) -> Iterator[Part]:
    for part in ("train", "test"):
        images, labels = read_arrays(path, part, f"label_{part}")
        pixels = _bytes(path, images, (28, 28, 3)).transpose(0, 3, 1, 2)
        larger = enlarge(pixels.reshape(-1, 28, 28)).reshape(-1, 3, SIDE, SIDE)
        yield _first(Part(larger, _one_hot(path, labels, len(images))), None if part == "train" else _TEST)


def _svhn(train: Path, test: Path) -> Iterator[Part]:
    yield _first(read_mat(train, zero=10), _TRAIN)
    yield _first(read_mat(test, zero=10), _TEST)


def _syn(path: Path) -> Iterator[Part]:
    for part, most in (("train", _TRAIN), ("test", _TEST)):
        images, labels = read_arrays(path, f"{part}_data", f"{part}_label")
        pixels = _bytes(path, images, (SIDE, SIDE, 3)).transpose(0, 3, 1, 2)
        yield _first(Part(pixels, _whole_labels(path, labels, len(images))), most)


def _usps(path: Path) -> Iterator[Part]:
    (table,) = read_arrays(path, "dataset")
    if table.shape != (2, 2) or table.dtype != object:
        raise DataError(f"{path}: dataset is {table.dtype} {table.shape}, expected cells (2, 2); replace the file")
    for (images, labels), times in zip(table, (_TIMES, 1), strict=True):
        grey = enlarge(_bytes(path, np.asarray(images) * 255, (1, 28, 28))[:, 0])
        classes = _whole_labels(path, np.asarray(labels), len(grey))
        yield Part(colours(np.tile(grey, (times, 1, 1))), np.tile(classes, times))


_PARTS: dict[str, tuple[Callable[..., Iterator[Part]], *tuple[str, ...]]] = {
    "mnist": (_mnist, "mnist_data.mat"),
    "mnist_m": (_mnist_m, "mnistm_with_label.mat"),
    "svhn": (_svhn, "svhn_train_32x32.mat", "svhn_test_32x32.mat"),
    "syn": (_syn, "syn_number.mat"),
    "usps": (_usps, "usps_28x28.mat"),
}
"""How a domain is read, and from which files."""


def _bytes(path: Path, images: Array, shape: tuple[int, ...]) -> Array:
    """Images (n, *shape) of numbers 0..255 as bytes, truncated to whole numbers as in M3SDA."""
    numbers = images.dtype.kind in "uif" and images.ndim > 1 and np.prod(images.shape[1:]) == np.prod(shape)
    if not (numbers and len(images) and images.min() >= 0 and images.max() <= 255):  # noqa: PLR2004 - bytes
        what = f"{images.dtype} {images.shape}, expected numbers 0..255 (images, {', '.join(map(str, shape))})"
        raise DataError(f"{path}: holds images {what}; replace the file")
    return images.reshape(-1, *shape).astype(np.uint8)


def _one_hot(path: Path, labels: Array, count: int) -> Array:
    numbers = labels.dtype.kind in "uifb" and labels.shape == (count, CLASSES)
    if not numbers or not (np.isin(labels, (0, 1)).all() and (labels.sum(1) == 1).all()):
        what = f"{labels.dtype} {labels.shape}, expected ({count}, {CLASSES}) with a single 1 in each row"
        raise DataError(f"{path}: labels are {what}; replace the file")
    classes: Array = labels.argmax(1).astype(np.int64)
    return classes


def _whole_labels(path: Path, labels: Array, count: int) -> Array:
    if labels.dtype.kind not in "fiu" or labels.size != count:
        raise DataError(f"{path}: labels are {labels.dtype} {labels.shape}, expected {count}; replace the file")
    return digits(labels.ravel(), path, 0, CLASSES) % CLASSES


def _first(part: Part, most: int | None) -> Part:
    return Part(part.x[:most], part.y[:most])
