"""Office-Home: everyday objects in four styles of image, as features that the user supplies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Literal, TypeAlias, cast

import numpy as np
from pydantic import Field

from msda_bench.api import (
    Added,
    Array,
    ByHand,
    DataError,
    Dataset,
    DomainData,
    File,
    Files,
    Inputs,
    InputSpec,
    Size,
    Task,
    component,
)
from msda_bench.functional import standardiser
from msda_bench_builtin.datasets.npz import read_npz

_Domain: TypeAlias = Literal["art", "clipart", "product", "real_world"]
_Sha256: TypeAlias = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]

_DOMAINS: tuple[_Domain, ...] = ("art", "clipart", "product", "real_world")
_WIDTH = 2048
_CLASSES = 65
_ORIGIN = ByHand("features that you make or are given, since nobody publishes them (see docs/datasets.md)")


@component
class OfficeHome(Dataset):
    """Everyday objects of 65 kinds as art, clip art, product pictures and photographs; features from your own files.

    The features are the 2048 numbers that a ResNet-50 trained on ImageNet has before its classifier, as in the released
    code of the paper's authors. No public files of them are known, so each domain is read from `office_home/DOMAIN.npz`
    below the user's data folder, with `x` (n, 2048) float and `y` (n,) whole numbers 0..64, the same kinds in all
    domains.

    Parameters:
        standardise: "domain" gives each feature mean 0 and variance 1 over the training examples of each domain,
            "pooled" over those of all; "none" leaves them.
        sha256: of each domain's file, by the domain's name. A file is not read without it; `msda-bench data verify
            office_home` shows those of the files at hand.

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
    standardise: Annotated[Literal["none", "pooled", "domain"], Added()] = "none"

    @property
    def domains(self) -> tuple[str, ...]:
        """The styles of image."""
        return _DOMAINS

    @property
    def task(self) -> Task:
        """Which of 65 kinds of object."""
        return Task("classification", _CLASSES)

    @property
    def input(self) -> InputSpec:
        """The features of an image."""
        return InputSpec((_WIDTH,))

    @property
    def files(self) -> tuple[File, ...]:
        """One for each domain, known by the checksum given."""
        return tuple(map(self._file, _DOMAINS))

    @property
    def notes(self) -> tuple[str, ...]:
        """That the features are nobody else's, and how they are standardised."""
        own = "office_home: the features are of the user's own files, known by their sha256."
        how = {"pooled": "over all domains", "domain": "in each domain"}.get(self.standardise)
        return (own,) if how is None else (own, f"office_home: features are standardised {how}, by training examples.")

    def load(self, domain: str, files: Files) -> DomainData:
        """The domain's features, (n, 2048) float32.

        Raises:
            DataError: the file is missing, has no checksum or another one, or does not hold such features.
        """
        path = files.path(next(file for file in self.files if file.path == _path(domain)))
        arrays = read_npz(path, ("x", "y"))
        x, y = _features(path, arrays["x"]), _labels(path, arrays["y"])
        if len(x) != len(y):
            raise DataError(f"{path}: x holds {len(x)} examples and y {len(y)} labels; make the file anew")
        return DomainData(x, y)

    def fit_domains(self, train: Mapping[str, Inputs]) -> Callable[[str, Inputs], Inputs]:
        """Learns to standardise, if that is asked for."""
        if self.standardise == "none":
            return super().fit_domains(train)
        return cast(
            "Callable[[str, Inputs], Inputs]", standardiser(cast("Mapping[str, Array]", train), self.standardise)
        )

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
        raise DataError(f"{path}: x is not finite in row {int(np.argmin(finite))}; make the file anew")
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
