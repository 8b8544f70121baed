"""Office-Home: everyday objects in four styles of image, as features of a ResNet-50: the user's own, or published."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np
from pydantic import Field

from msda_bench.api import Array, ByHand, DataError, DomainData, File, Files, InputSpec, Size, Task, Url, component
from msda_bench_builtin.datasets.features import Standardised
from msda_bench_builtin.datasets.images.dataset import Sha256
from msda_bench_builtin.datasets.images.listing import plain_name
from msda_bench_builtin.datasets.tables.npz import read_arrays
from msda_bench_builtin.datasets.unpacked import reading, zip_member

_WIDTH, _CLASSES = 2048, 65
_Domain: TypeAlias = Literal["art", "clipart", "product", "real_world"]

_DOMAINS: tuple[_Domain, ...] = ("art", "clipart", "product", "real_world")
_ORIGIN = ByHand("features that you make or are given, see docs/datasets.md (published ones are office_home_features)")
_TABLE = "OfficeHomeResnet50.csv"
_ARCHIVE = File(
    "office_home_features/OfficeHomeResnet50.zip",
    "be46195bd8737e997ade333341a6c943139f974211bbbf726d760c990124f749",
    None,
    Url((
        "https://ndownloader.figshare.com/files/46093947",
        "https://api.figshare.com/v2/file/download/46093947",
    )),
)  # fmt: skip


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
    domains = _DOMAINS
    task = Task("classification", _CLASSES)
    input = InputSpec((_WIDTH,))

    train: Size = 2000
    sha256: dict[_Domain, Sha256] = Field(default_factory=dict)

    @property
    def files(self) -> tuple[File, ...]:
        """One for each domain, identified by the given checksum."""
        return tuple(File(f"office_home/{domain}.npz", self.sha256.get(domain), None, _ORIGIN) for domain in _DOMAINS)

    @property
    def notes(self) -> tuple[str, ...]:
        """Reports that the features are the user's own, and how they are standardised."""
        return ("office_home: the features are of the user's own files, known by their sha256.", *super().notes)

    def load(self, domain: str, files: Files) -> DomainData:
        """The domain's features, (n, 2048) float32."""
        path = files.path(self.files[self.domains.index(domain)])
        arrays = read_arrays(path, ("x", "y"))
        x, y = _features(path, arrays["x"]), _labels(path, arrays["y"])
        if len(x) != len(y):
            raise DataError(f"{path}: x holds {len(x)} examples and y {len(y)} labels; make the file again")
        return DomainData(x, y)


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


@component
class OfficeHomeFeatures(Standardised):
    """Everyday objects of 65 kinds as art, clip art, product pictures and photographs: 2048 features of a ResNet-50.

    From the archive that the library skada reads. It is not published how the features were made, so compare methods
    with each other, not with published results of fine-tuned networks. We have not seen its bytes: its checksum, layout
    and counts come from skada.

    Venkateswara, Eusebio, Chakraborty, Panchanathan. Deep Hashing Network for Unsupervised Domain Adaptation. CVPR
    2017.
    """

    name = "office_home_features"
    version = 1
    licence = "the images': academic research, fair use notice; of the features none is stated"
    modality = "images"
    source = "Venkateswara et al. 2017; features from figshare file 46093947, as in skada"
    files = (_ARCHIVE,)
    published: ClassVar = {"art": 2427, "clipart": 4365, "product": 4439, "real_world": 4357}
    task = Task("classification", _CLASSES)
    input = InputSpec((_WIDTH,))

    train: Size = 2000

    @property
    def notes(self) -> tuple[str, ...]:
        """Reports that it is unknown how the features were made."""
        unknown = "office_home_features: how the features were made is not published; compare methods only."
        return (unknown, *super().notes)

    def load(self, domain: str, files: Files) -> DomainData:
        """The domain's features, (n, 2048) float32, in the table's order; kinds are numbered in alphabetical order."""
        (archive,) = self.files
        path = files.path(archive)
        name = json.dumps(["features", self.name, self.version, archive.checksum])
        arrays = files.derived(name, lambda: self._arrays(path))
        return DomainData(arrays[f"{domain}_x"], arrays[f"{domain}_y"])

    def _arrays(self, path: Path) -> dict[str, Array]:
        with reading(path, "cannot be read"), zip_member(path, _TABLE) as stream:
            rows = list(_rows(io.TextIOWrapper(stream, "utf-8", newline="")))
        mine = {domain: [row for row in rows if row.domain == plain_name(domain)] for domain in self.published}
        counts = {domain: len(found) for domain, found in mine.items()}
        kinds = sorted({row.kind for row in rows})
        if counts != dict(self.published) or len(kinds) != _CLASSES:
            expected = f"expected {dict(self.published)} and {_CLASSES}"
            raise DataError(f"{path}: holds {counts} examples of {len(kinds)} classes, {expected}; replace the file")
        arrays: dict[str, Array] = {}
        for domain, found in mine.items():
            arrays[f"{domain}_x"] = np.stack([row.features for row in found])
            arrays[f"{domain}_y"] = np.array([kinds.index(row.kind) for row in found])
            if not np.isfinite(arrays[f"{domain}_x"]).all():
                raise DataError(f"{path}: holds numbers that are not finite; replace the file")
        return arrays


class _Row(NamedTuple):
    domain: str
    kind: str
    features: Array


def _rows(lines: Iterable[str]) -> Iterator[_Row]:
    table = csv.reader(lines)
    next(table, None)  # the columns' names
    for row in table:
        if len(row) != _WIDTH + 2:
            raise ValueError(f"line {table.line_num} has {len(row)} fields, expected {_WIDTH + 2}")
        yield _Row(plain_name(row[-1]), plain_name(row[-2]), np.array(row[:_WIDTH], np.float32))
