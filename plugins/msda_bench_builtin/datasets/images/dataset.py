"""The base of all datasets of images: files that the user supplies, decoded and resized once."""

from __future__ import annotations

import hashlib
import json
import logging
import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple, cast

import numpy as np
from pydantic import AfterValidator, Field

from msda_bench.api import (
    AddedLater,
    Array,
    ByHand,
    DataError,
    Dataset,
    DomainData,
    Extent,
    File,
    Files,
    InputSpec,
    NewRowsReader,
    Row,
    Size,
    Strength,
    Task,
    component,
)
from msda_bench_builtin.datasets.features import digest
from msda_bench_builtin.datasets.first_suite import Recipes, Settings, comparison, plain_methods
from msda_bench_builtin.datasets.images.decode import decoder, fingerprint
from msda_bench_builtin.datasets.images.listing import names_text, plain_name
from msda_bench_builtin.datasets.images.new_images import ImagesReader, decoded_rows
from msda_bench_builtin.datasets.sizes import Imbalance

if TYPE_CHECKING:
    from torch import Tensor

    from msda_bench.api import Examples

Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"is no regular expression: {error}") from None
    return text


Pattern = Annotated[str, Field(min_length=1, max_length=500), AfterValidator(_pattern)]
"""A regular expression."""
Share = Annotated[float, Field(ge=0, le=1)]
Counts = Mapping[str, Mapping[str, int]]
_FEATURES = 512
"""Of a ResNet-18."""
_NETWORK = {"model": "resnet18", "weights": "IMAGENET1K_V1", "trainable": "head", "hidden": [256], "dropout": 0.5}
_ABOUT_NETWORK = (
    "features of a network trained on ImageNet, under a small head that learns (docs/images.md); "
    "`msda-bench run --fetch` downloads its weights once, 45 MB"
)
_TRAINING = {"epochs": 8, "batch": 32, "optimizer": {"adam": {"lr": 0.001}}}


class Listing(NamedTuple):
    """Images of a domain.

    Attributes:
        images: in order, with their class and whether they are official test examples.
        odd: harmless oddities that the user should know, a line each.
        groups: of the images by their names, if a list names them.
    """

    images: Sequence[tuple[Row, int, bool]]
    odd: Sequence[str] = ()
    groups: Mapping[str, str] | None = None


@component
class Images(Dataset):
    """Images of several domains from a folder of the user's.

    Parameters that every dataset of images has:
        folder: the folder below a data folder; an uncompressed tar archive also works, unless there are lists.
        sha256: the folder's checksum, as `msda-bench data identify FOLDER` prints it. Nothing is read without it.
        side: the side in pixels of the square that a network gets.
        short: pixels of the shorter side after resizing, before the centre is cropped; None squeezes the whole image.
        without: files to skip, by their path below the folder, such as damaged ones.
        upright: whether images are turned as their EXIF orientation says; `data identify` writes it where one is.
        crop: side of a smaller square that a network gets instead: a random one in training, the centre in tests.
        scale: least and largest share of the image's area in a random crop, which is resized to the network's square.
        flip: whether half of the images are mirrored in training.
        jitter: brightness, contrast and saturation are multiplied by 1 - jitter to 1 + jitter in training.
        grey: the share of images that lose their colours in training.
    """

    modality = "images"
    origin: ClassVar[ByHand] = ByHand("images that you supply (docs/images.md)")
    published: ClassVar[Mapping[str, int]] = {}
    """Images of each domain in the published set; empty if the domains are the user's own."""
    facts: ClassVar[tuple[str, ...]] = ()
    """Known facts on the set's copies, a line each."""

    folder: Annotated[str, Field(min_length=1, max_length=500)] = "images"
    sha256: Sha256 | None = None
    side: Annotated[int, Field(ge=1, le=4096)] = 224
    short: Annotated[int, Field(ge=1, le=4096)] | None = None
    without: tuple[str, ...] = ()
    upright: Annotated[bool, AddedLater()] = False
    crop: Annotated[Annotated[int, Field(ge=1, le=4096)] | None, AddedLater()] = None
    scale: Annotated[tuple[Share, Share] | None, AddedLater()] = None
    flip: Annotated[bool, AddedLater()] = False
    jitter: Annotated[Share, AddedLater()] = 0.0
    grey: Annotated[Share, AddedLater()] = 0.0

    train: Size = 100

    def __post_init__(self) -> None:
        """Refuses a square larger than its image, and shares in the wrong order."""
        if self.short is not None and self.short < self.side:
            raise ValueError(f"short is {self.short}, less than side, {self.side}")
        if self.crop is not None and self.crop > self.side:
            raise ValueError(f"crop is {self.crop}, more than side, {self.side}")
        if self.scale is not None and not 0 < self.scale[0] <= self.scale[1]:
            raise ValueError(f"scale is {list(self.scale)}; it must hold two shares above 0, the smaller one first")

    @property
    @abstractmethod
    def classes(self) -> int:
        """The expected number of classes."""

    @abstractmethod
    def listed(self, domain: str, files: Files) -> Listing:
        """The domain's images in order.

        Raises:
            DataError: a line for each kind of fault.
        """

    @property
    def task(self) -> Task:
        """The class."""
        return Task("classification", self.classes)

    @property
    def input(self) -> InputSpec:
        """A colour image, 0 for black and 1 for white, stored as bytes."""
        return InputSpec((3, self._square, self._square), bytes=True)

    @property
    def _square(self) -> int:
        return self.crop or self.side

    @property
    def files(self) -> tuple[File, ...]:
        """The folder."""
        return (File(self.folder, self.sha256, None, self.origin),)

    def sizes(self, files: Files | None = None) -> dict[str, Extent]:
        """Images of each domain as listed in the folder, if it is here; none is decoded."""
        sizes: dict[str, Extent] = {}
        problems: list[str] = []
        if files is None:
            return sizes
        try:
            files.path(self.files[0])
        except DataError:
            return sizes
        for domain in self.domains:
            try:
                kept = self._kept(self.listed(domain, files))
            except DataError as error:
                problems.extend(error.lines)
                continue
            tests = sum(official for _, _, official in kept)
            sizes[domain] = (len(kept) - tests, tests) if tests else len(kept)
        if not sizes:
            raise DataError(*dict.fromkeys(problems))
        return sizes

    def prepare(self, files: Files, domains: Sequence[str]) -> None:
        """Decodes domains, one after the other; reports all faults, and warns of oddities."""
        problems: list[str] = []
        for domain in domains:
            try:
                _, odd = self._load(domain, files)
            except DataError as error:
                problems.extend(error.lines)
            else:
                for what in odd:
                    (line,) = DataError(f"{self.name}: {domain}: {what}").lines  # printable for all file names
                    logging.getLogger(__name__).warning("%s", line)
        if problems:
            raise DataError(*dict.fromkeys(problems))

    def load(self, domain: str, files: Files) -> DomainData:
        """The domain's images, (n, 3, side, side) uint8, mapped into memory."""
        return self._load(domain, files)[0]

    def _load(self, domain: str, files: Files) -> tuple[DomainData, Sequence[str]]:
        listing = self.listed(domain, files)
        kept = self._kept(listing)
        rows = tuple(row for row, _, _ in kept)
        labels = np.array([label for _, label, _ in kept], np.int64)
        official = np.array([is_test for _, _, is_test in kept], np.bool_)
        groups = self._groups(domain, [row.name for row in rows], listing.groups)
        if groups is not None:
            self._check_groups(domain, groups, official)
        options = self._options()
        name = self._cache_name(domain, rows, options)
        x = decoded_rows(files, name, rows, options, f"{self.name}: {domain}")
        return DomainData(x, labels, official if official.any() else None, name, groups), listing.odd

    def _cache_name(self, domain: str, rows: Sequence[Row], options: Mapping[str, Any]) -> str:
        """The name of decoded images in the cache, which tells them from all others."""
        names = json.dumps({row.name: row.size for row in rows}).encode(errors="surrogateescape")
        rows_here = hashlib.sha256(names).hexdigest()
        identity = [self.name, self.version, self.folder, [file.sha256 for file in self.files], rows_here]
        return json.dumps(["images", domain, *identity, options])

    def _check_groups(self, domain: str, groups: Array, official: Array) -> None:
        """Refuses groups with official test images and others."""
        both = np.intersect1d(groups[official], groups[~official])
        if len(both):
            what = f"group {str(both[0])!r} has official test images and others"
            raise DataError(f"{self.name}: {domain}: {what}; correct `groups` or the official test, or leave one out")

    def _options(self) -> dict[str, Any]:
        """How an image is decoded."""
        options: dict[str, Any] = {"side": self.side, "short": self.short, "decoder": decoder()}
        if self.upright:
            options["upright"] = True
        return options

    def class_names(self, files: Files) -> tuple[str, ...]:
        """The names of the classes, in order; their numbers unless overridden.

        Raises:
            DataError: the folder is missing or wrong.
        """
        return tuple(map(str, range(self.classes)))

    def new_rows_reader(self, files: Files) -> NewRowsReader:
        """What reads images of any folder."""
        return ImagesReader(classes=self.class_names(files), options=self._options())

    @property
    def has_groups(self) -> bool:
        """Whether lists of the images name groups."""
        return False

    @property
    def grouping(self) -> str | None:
        """The regular expression of what images of one group have in common in their paths; None without groups."""
        return None

    def _groups(self, domain: str, names: Sequence[str], listed_groups: Mapping[str, str] | None) -> Array | None:
        """The group of each image, which is of this domain only.

        Raises:
            DataError: an image has none, or all have the same.
        """
        if listed_groups is not None:
            return self._groups_of(domain, [listed_groups[name] for name in names])
        if self.grouping is not None:
            return self.grouped_by(self.grouping, domain, names)
        return None

    def grouped_by(self, pattern: str, domain: str, names: Sequence[str]) -> Array:
        """The group of each image by a regular expression of its path; raises as `_groups`."""
        groups: dict[str, str] = {}
        without = []
        for name in names:
            match = re.search(pattern, name.removeprefix("./"))
            if match is None:
                without.append(name)
            else:
                groups[name] = "/".join(match.groups("")) or match[0]
        if without:
            what = f"`groups` ({pattern}) matches nothing in the paths of images, {names_text(dict.fromkeys(without))}"
            raise DataError(f"{self.name}: {domain}: {what}; correct it")
        return self._groups_of(domain, list(groups.values()))

    def _groups_of(self, domain: str, groups: Sequence[str]) -> Array:
        if len(groups) > 1 and len(set(groups)) == 1:
            what = f"all images are of one group, {groups[0]!r}, so they cannot be split"
            raise DataError(f"{self.name}: {domain}: {what}; correct `groups`")
        return np.array([f"{domain}/{group}" for group in groups], np.str_)

    def _kept(self, listing: Listing) -> list[tuple[Row, int, bool]]:
        """The images that are not skipped, with official test images by list or by pattern."""
        kept = []
        for row, label, is_listed_test in listing.images:
            if row.name not in self.without:
                kept.append((row, label, is_listed_test or self.is_test(row.name)))
        return kept

    @property
    def testing(self) -> str | None:
        """The regular expression of the paths of official test images; None if only folders or lists say so."""
        return None

    def is_test(self, name: str) -> bool:
        """Whether `testing` makes an image an official test image."""
        return self.testing is not None and re.search(self.testing, name.removeprefix("./")) is not None

    def augmentation(self) -> tuple[str, ...]:
        """The parameters among `crop`, `scale`, `flip`, `jitter` and `grey` that change an image."""
        used = {
            "crop": self._square != self.side,
            "scale": self.scale is not None,
            "flip": self.flip,
            "jitter": self.jitter,
            "grey": self.grey,
        }
        return tuple(name for name, value in used.items() if value)

    def augment(self, x: Tensor, key: Tensor | None) -> Tensor:
        """Random changes in training; the centre in tests."""
        from msda_bench_builtin.datasets.images.augment import Recipe, centre, changed

        if key is None:
            return centre(x, self._square)
        return changed(x, key, self._square, Recipe(self.scale, self.flip, self.jitter, self.grey))

    def view(self, x: Examples, strength: Strength, key: Tensor) -> Examples:
        """Weak: a random crop of at least 70 % of the area, possibly mirrored; strong: also with changed colours.

        In half of the strong views a rectangle is erased, and a fifth lose their colours.
        """
        from msda_bench_builtin.datasets.images.augment import VIEWS, changed

        return changed(cast("Tensor", x), key, self._square, VIEWS[strength])

    def fingerprint(self) -> str:
        """Changes with the folder, the parameters, and the pixels that the libraries decode from a file."""
        return digest(super().fingerprint(), fingerprint())


def first_suite(counts: Counts, imbalance: Imbalance | None = None) -> Settings:
    """What a first suite of these domains of images needs below its `dataset`."""
    has_several_sources = len(counts) > len(("source", "target"))
    classes = set[str]().union(*counts.values())
    methods: Recipes = {
        "SRC": {"scheme": "pooled"},
        "DANN": {"scheme": "pooled", "discrepancy": "d_A", "mu": 0.01},
    }
    if has_several_sources:
        methods["DARN"] = {"discrepancy": "d_A", "mu": 0.01, "aggregator": {"sharpmax": {"gamma": 1.0}}}
    methods.update(plain_methods(_FEATURES, len(classes), several=has_several_sources))
    methods["TAR"] = {"scheme": "target_only", "reference": True}
    settings: Settings = {"backbone": ({"torchvision": _NETWORK}, _ABOUT_NETWORK), "training": (_TRAINING, "")}
    if imbalance is not None:
        settings.update(imbalance.settings)
    return comparison(list(counts), methods, settings)


def what_is_missing(counts: Counts, published: Mapping[str, int], classes: int | None) -> Iterator[str]:
    """A line for each domain that differs from the published one, and for each without images of a class."""
    every = set[str]().union(*counts.values())
    here = {plain_name(domain): of_class for domain, of_class in counts.items()}
    for domain, expected in published.items():
        number = sum(here.get(plain_name(domain), {}).values())
        if not number:
            yield f"missing: domain {domain}, {expected} images"
        elif number != expected:
            yield f"differs: domain {domain} has {number} images, published are {expected}"
    if classes is not None and len(every) != classes:
        yield f"differs: {len(every)} classes, published are {classes}"
    for domain, of_class in counts.items():
        missing = every - set(of_class)
        if missing:
            yield f"missing: domain {domain} has no images of classes {names_text(missing)}"
