"""What all datasets of images share: files that the user supplies, decoded and resized once."""

from __future__ import annotations

import hashlib
import json
import logging
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from pydantic import Field

from msda_bench.api import (
    Array,
    ByHand,
    DataError,
    Dataset,
    DomainData,
    File,
    Files,
    Inputs,
    InputSpec,
    Row,
    Rows,
    Size,
    Task,
    component,
)
from msda_bench_builtin.datasets.images.decode import decoder, fingerprint

Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class Listing(NamedTuple):
    """Images of a domain.

    Attributes:
        images: in order, with their class and whether they are official test examples.
        odd: what a user should know of them although it does no harm, a line each.
    """

    images: Sequence[tuple[Row, int, bool]]
    odd: Sequence[str] = ()


@component
class Images(Dataset):
    """Images of several domains from a folder of the user's.

    Parameters that every dataset of images has:
        folder: where it lies below a data folder; a tar archive that is not compressed will do as well, where
            there are no lists.
        sha256: the folder's checksum, as `msda-bench data identify FOLDER` prints it. Nothing is read without it.
        side: pixels of the square that a network gets.
        short: pixels of the shorter side after resizing, of which the centre is kept; None squeezes the whole image.
        without: files that are left out, by their path below the folder, such as those that are damaged.
    """

    modality = "images"
    origin: ClassVar[ByHand] = ByHand("images that you supply (docs/images.md)")

    folder: Annotated[str, Field(min_length=1, max_length=500)] = "images"
    sha256: Sha256 | None = None
    side: Annotated[int, Field(ge=1, le=4096)] = 224
    short: Annotated[int, Field(ge=1, le=4096)] | None = None
    without: tuple[str, ...] = ()

    train: Size = 100

    def __post_init__(self) -> None:
        """Refuses a square that is cut from less."""
        if self.short is not None and self.short < self.side:
            raise ValueError(f"short is {self.short}, less than side, {self.side}")

    @property
    @abstractmethod
    def classes_expected(self) -> int:
        """How many classes there are."""

    @abstractmethod
    def listed(self, domain: str, files: Files) -> Listing:
        """The domain's images in order.

        Raises:
            DataError: a line for each kind of fault.
        """

    @property
    def task(self) -> Task:
        """Which class."""
        return Task("classification", self.classes_expected)

    @property
    def input(self) -> InputSpec:
        """A colour image, 0 for black and 1 for white."""
        return InputSpec((3, self.side, self.side))

    @property
    def files(self) -> tuple[File, ...]:
        """The folder."""
        return (File(self.folder, self.sha256, None, self.origin),)

    def prepare(self, files: Files) -> None:
        """Decodes all domains, one after the other; names what is wrong in any of them, and warns of what is odd.

        Raises:
            DataError: a line for each kind of fault.
        """
        problems: list[str] = []
        for domain in self.domains:
            try:
                _, odd = self._load(domain, files)
            except DataError as error:
                problems.extend(error.lines)
            else:
                for what in odd:
                    self._warn(domain, what)
        if problems:
            raise DataError(*dict.fromkeys(problems))

    def load(self, domain: str, files: Files) -> DomainData:
        """The domain's images, (n, 3, side, side) uint8, mapped into memory.

        Raises:
            DataError: the folder is missing or another one, or a line for each kind of fault of its images.
        """
        return self._load(domain, files)[0]

    def _load(self, domain: str, files: Files) -> tuple[DomainData, Sequence[str]]:
        found = self.listed(domain, files)
        listed = [item for item in found.images if item[0].name not in self.without]
        options = {"side": self.side, "short": self.short, "decoder": decoder()}
        rows = tuple(row for row, _, _ in listed)
        make = Rows("msda_bench_builtin.datasets.images.decode:decode", rows, (3, self.side, self.side), options)
        identity = [self.name, self.version, self.folder, [file.sha256 for file in self.files], self._listing(rows)]
        try:
            x = files.rows(json.dumps(["images", domain, *identity, options]), make)
        except DataError as error:
            raise DataError(*(f"{self.name}: {domain}: {line}" for line in error.lines)) from None
        official = np.array([test for _, _, test in listed], np.bool_)
        labels = np.array([label for _, label, _ in listed], np.int64)
        return DomainData(x, labels, official if official.any() else None), found.odd

    def fit(self, train: Sequence[Inputs]) -> Callable[[Inputs], Inputs]:
        """Learns nothing; gives the map of bytes to float32, so that images stay bytes until chosen."""
        return _scaled

    def fingerprint(self) -> str:
        """Changes with the folder, the parameters, and what the libraries make of a file."""
        return hashlib.sha256(json.dumps([super().fingerprint(), fingerprint()]).encode()).hexdigest()

    def _warn(self, domain: str, what: str) -> None:
        (line,) = DataError(f"{self.name}: {domain}: {what}").lines  # printable, whatever the files' names are
        logging.getLogger(__name__).warning("%s", line)

    @staticmethod
    def _listing(rows: Sequence[Row]) -> str:
        names: Mapping[str, Any] = {row.name: row.size for row in rows}
        return hashlib.sha256(json.dumps(names).encode(errors="surrogateescape")).hexdigest()


def _scaled(images: Inputs) -> Inputs:
    scaled: Array = np.divide(images, np.float32(255), dtype=np.float32)
    return scaled
