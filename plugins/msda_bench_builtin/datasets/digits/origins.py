"""The sources of each domain's images."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from msda_bench.api import Array, DomainData, File, Files
from msda_bench_builtin.datasets.digits import files as known
from msda_bench_builtin.datasets.digits import mnist_m_made, synth_fonts
from msda_bench_builtin.datasets.digits.idx import read_mnist
from msda_bench_builtin.datasets.digits.mat import read_mat
from msda_bench_builtin.datasets.digits.mnist_m import read_mnist_m
from msda_bench_builtin.datasets.digits.mnist_m_made import blend
from msda_bench_builtin.datasets.digits.part import Part, whole
from msda_bench_builtin.datasets.digits.usps import read_usps

PartName = Literal["train", "test"]


class Origin(ABC):
    """The source of a domain's images."""

    @property
    @abstractmethod
    def files(self) -> tuple[File, ...]:
        """The files to read."""

    @property
    @abstractmethod
    def sizes(self) -> tuple[int, int]:
        """Images of the training and of the test part."""

    @property
    def note(self) -> str | None:
        """A note for the reader of the results."""
        return None

    def ingredients(self) -> list[str]:
        """Everything besides the files and the code on which the images depend."""
        return []

    @abstractmethod
    def load(self, files: Files) -> DomainData:
        """The domain.

        Raises:
            DataError: a file, a font or a photograph is missing or wrong.
        """


def _arrays(train: Part, test: Part) -> Mapping[str, Array]:
    return {"train_x": train.x, "train_y": train.y, "test_x": test.x, "test_y": test.y}


def _parts(arrays: Mapping[str, Array]) -> DomainData:
    return whole(Part(arrays["train_x"], arrays["train_y"]), Part(arrays["test_x"], arrays["test_y"]))


@dataclass(frozen=True)
class Mnist(Origin):
    """The four idx files."""

    @property
    def files(self) -> tuple[File, ...]:
        """Training images and labels, test images and labels."""
        return known.MNIST

    @property
    def sizes(self) -> tuple[int, int]:
        """Images of the training and of the test part."""
        return 60000, 10000

    def load(self, files: Files) -> DomainData:
        """60000 and 10000 handwritten digits."""
        return whole(self.part("train", files), self.part("test", files))

    def part(self, part: PartName, files: Files) -> Part:
        """One of the two parts."""
        images, labels = self.files[:2] if part == "train" else self.files[2:]
        return read_mnist(files.path(images), files.path(labels))


@dataclass(frozen=True)
class MnistM(Origin):
    """The archive of PNG files, decoded once and then kept."""

    copies: known.Copies

    @property
    def files(self) -> tuple[File, ...]:
        """The archive."""
        return (known.mnist_m(self.copies),)

    @property
    def note(self) -> str | None:
        """Reports the missing images of a reduced copy."""
        less = "mnist_m: 10000 of the 59001 training images and 4000 of the 9001 test images (reduced copy)"
        return less if self.copies == "reduced" else None

    @property
    def sizes(self) -> tuple[int, int]:
        """Images of the training and of the test part."""
        return (10000, 4000) if self.copies == "reduced" else (59001, 9001)

    def load(self, files: Files) -> DomainData:
        """59001 and 9001 blends of digits with photographs, or fewer."""
        (file,) = self.files
        path = files.path(file)
        return _parts(files.derived(json.dumps(["mnist_m", 1, file.checksum]), lambda: _arrays(*read_mnist_m(path))))


@dataclass(frozen=True)
class Svhn(Origin):
    """Two MATLAB files."""

    copies: known.Copies

    @property
    def files(self) -> tuple[File, ...]:
        """The training and the test part."""
        return known.svhn(self.copies)

    @property
    def note(self) -> str | None:
        """Reports the missing images of a reduced copy, and that its parts were divided again."""
        less = (
            "svhn: 7500 training and 3583 test images, divided anew from 1083 of the 73257 training and 10000 of the "
            "26032 test images (reduced copy)"
        )
        return less if self.copies == "reduced" else None

    @property
    def sizes(self) -> tuple[int, int]:
        """Images of the training and of the test part."""
        return (7500, 3583) if self.copies == "reduced" else (73257, 26032)

    def load(self, files: Files) -> DomainData:
        """73257 and 26032 house numbers, or fewer."""
        train, test = (read_mat(files.path(file), zero=10) for file in self.files)
        return whole(train, test)


@dataclass(frozen=True)
class Synth(Origin):
    """Two MATLAB files of Synthetic Digits."""

    @property
    def files(self) -> tuple[File, ...]:
        """The training and the test part."""
        return known.SYNTH

    @property
    def sizes(self) -> tuple[int, int]:
        """Images of the training and of the test part."""
        return 479400, 9553

    def load(self, files: Files) -> DomainData:
        """479400 and 9553 rendered digits; takes 3 GB while it reads them."""
        train, test = (read_mat(files.path(file), zero=None) for file in self.files)
        return whole(train, test)


@dataclass(frozen=True)
class Usps(Origin):
    """Two text files, decoded once and then kept."""

    @property
    def files(self) -> tuple[File, ...]:
        """The training and the test part."""
        return known.USPS

    @property
    def sizes(self) -> tuple[int, int]:
        """Images of the training and of the test part."""
        return 7291, 2007

    def load(self, files: Files) -> DomainData:
        """7291 and 2007 handwritten digits from envelopes."""
        train, test = (files.path(file) for file in self.files)
        name = json.dumps(["usps", 1, *(file.checksum for file in self.files)])
        return _parts(files.derived(name, lambda: _arrays(read_usps(train), read_usps(test))))


@dataclass(frozen=True)
class Made(Origin):
    """Images generated once and then kept."""

    train: int
    test: int

    @property
    def sizes(self) -> tuple[int, int]:
        """Images of the training and of the test part."""
        return self.train, self.test

    def load(self, files: Files) -> DomainData:
        """As many as requested."""
        return whole(self._part("train", self.train, files), self._part("test", self.test, files))

    def _part(self, part: PartName, count: int, files: Files) -> Part:
        identity = ("digits", type(self).__name__, 1, part)
        name = json.dumps([*identity, count, self.ingredients(), [file.checksum for file in self.files]])
        arrays = files.derived(name, lambda: self.make(part, count, identity, files))
        return Part(arrays["x"], arrays["y"])

    @abstractmethod
    def make(self, part: PartName, count: int, identity: tuple[str | int, ...], files: Files) -> Mapping[str, Array]:
        """`x` and `y` of one part, their random numbers drawn for `identity`."""


@dataclass(frozen=True)
class SynthFonts(Made):
    """Numbers rendered from matplotlib's fonts."""

    @property
    def files(self) -> tuple[File, ...]:
        """None: the fonts are installed."""
        return ()

    @property
    def note(self) -> str | None:
        """Reports that it is a stand-in."""
        return "synth_fonts is rendered from the fonts of matplotlib, a stand-in for Synthetic Digits"

    def ingredients(self) -> list[str]:
        """The fonts."""
        return synth_fonts.identity()

    def make(self, part: PartName, count: int, identity: tuple[str | int, ...], files: Files) -> Mapping[str, Array]:
        """Renders them."""
        return synth_fonts.render(count, identity)


@dataclass(frozen=True)
class MnistMMade(Made):
    """MNIST blended with a photograph."""

    @property
    def files(self) -> tuple[File, ...]:
        """Those of MNIST."""
        return known.MNIST

    @property
    def note(self) -> str | None:
        """Reports that it is a stand-in."""
        return "mnist_m_made is MNIST blended with pieces of one photograph, a stand-in for MNIST-M"

    def ingredients(self) -> list[str]:
        """The photograph."""
        return mnist_m_made.identity()

    def make(self, part: PartName, count: int, identity: tuple[str | int, ...], files: Files) -> Mapping[str, Array]:
        """Blends them."""
        return blend(Mnist().part(part, files), count, identity)
