"""Office-Home: everyday objects in four styles of image, as features that the user supplies."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import numpy as np
from pydantic import Field

from msda_bench.api import (
    Array,
    ByHand,
    DataError,
    DomainData,
    File,
    Files,
    InputSpec,
    Size,
    Task,
    component,
)
from msda_bench_builtin.datasets.features import Standardised
from msda_bench_builtin.datasets.tables.arrays import read_arrays

_Domain: TypeAlias = Literal["art", "clipart", "product", "real_world"]
_Sha256: TypeAlias = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]

_DOMAINS: tuple[_Domain, ...] = ("art", "clipart", "product", "real_world")
_WIDTH = 2048
_CLASSES = 65
_ORIGIN = ByHand("features that you make or are given, see docs/datasets.md (published ones are office_home_features)")


@component
class OfficeHome(Standardised):
    """Everyday objects of 65 kinds as art, clip art, product pictures and photographs; features from your own files.

    The features are the 2048 numbers before the classifier of a ResNet-50 trained on ImageNet, as in the released code
    of the paper's authors, who published no feature files. Each domain is read from `office_home/DOMAIN.npz` below the
    user's data folder, with `x` (n, 2048) float and `y` (n,) whole numbers 0..64, the same kinds in all domains.
    Published features of unknown origin are `office_home_features`.

    Parameters:
        sha256: of each domain's file, by the domain's name. A file is not read without it; `msda-bench data verify
            office_home` shows those of your files.

    Venkateswara, Eusebio, Chakraborty, Panchanathan. Deep Hashing Network for Unsupervised Domain Adaptation. CVPR
    2017.
    """

    name = "office_home"
    version = 1
    licence = "the images': academic research, under their publisher's fair use notice"
    modality = "images"
    source = "Venkateswara et al. 2017; features of the images that you make or are given"

    train: Size = 2000
    sha256: dict[_Domain, _Sha256] = Field(default_factory=dict)

    @property
    def domains(self) -> tuple[str, ...]:
        """The styles of image."""
        return _DOMAINS

    @property
    def task(self) -> Task:
        """One of 65 kinds of object."""
        return Task("classification", _CLASSES)

    @property
    def input(self) -> InputSpec:
        """The features of an image."""
        return InputSpec((_WIDTH,))

    @property
    def files(self) -> tuple[File, ...]:
        """One for each domain, identified by the given checksum."""
        return tuple(map(self._file, _DOMAINS))

    @property
    def notes(self) -> tuple[str, ...]:
        """Reports that the features are the user's own, and how they are standardised."""
        return ("office_home: the features are of the user's own files, known by their sha256.", *super().notes)

    def load(self, domain: str, files: Files) -> DomainData:
        """The domain's features, (n, 2048) float32.

        Raises:
            DataError: the file is missing, has no checksum or another one, or does not hold such features.
        """
        path = files.path(next(file for file in self.files if file.path == _path(domain)))
        arrays = read_arrays(path, ("x", "y"))
        x, y = _features(path, arrays["x"]), _labels(path, arrays["y"])
        if len(x) != len(y):
            raise DataError(f"{path}: x holds {len(x)} examples and y {len(y)} labels; make the file again")
        return DomainData(x, y)

    def _file(self, domain: _Domain) -> File:
        return File(_path(domain), self.sha256.get(domain), None, _ORIGIN)


def _path(domain: str) -> str:
    return f"office_home/{domain}.npz"


def _features(path: Path, x: Array) -> Array:
    if x.dtype.kind != "f" or x.ndim != 2 or x.shape[1] != _WIDTH:  # noqa: PLR2004 - rows and columns
        raise DataError(f"{path}: x is {_what(x)}; it must be floats of shape (n, {_WIDTH})")
    with np.errstate(over="ignore"):  # overflow is reported below
        single = x.astype(np.float32)
    finite = np.isfinite(single).all(axis=1)
    if not finite.all():
        raise DataError(f"{path}: x is not finite in row {int(np.argmin(finite))}; make the file again")
    return single


def _labels(path: Path, y: Array) -> Array:
    if y.dtype.kind not in "iu" or y.shape not in {(y.size,), (y.size, 1)}:
        raise DataError(f"{path}: y is {_what(y)}; it must be whole numbers of shape (n,)")
    labels = y.reshape(-1)
    outside = (labels < 0) | (labels >= _CLASSES)
    if outside.any():
        row = int(np.argmax(outside))
        raise DataError(f"{path}: y is {labels[row]} in row {row}; it must be in 0..{_CLASSES - 1}")
    return labels.astype(np.int64)


def _what(array: Array) -> str:
    return f"{array.dtype} of shape {array.shape}"
