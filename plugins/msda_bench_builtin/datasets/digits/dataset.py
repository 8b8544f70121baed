"""Digits, handwritten, printed and photographed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Literal

import numpy as np
from pydantic import AfterValidator, Field

from msda_bench.api import (
    AddedLater,
    Dataset,
    DomainData,
    File,
    Files,
    Inputs,
    InputSpec,
    Size,
    Task,
    TestSize,
    component,
)
from msda_bench_builtin.datasets.digits.origins import Copies, Origin, origins
from msda_bench_builtin.datasets.digits.readers import CLASSES, SIDE
from msda_bench_builtin.datasets.features import digest

Domain = Literal["mnist", "mnist_m", "svhn", "synth", "usps", "synth_fonts", "mnist_m_made"]


def _once(domains: tuple[Domain, ...]) -> tuple[Domain, ...]:
    if len(set(domains)) < len(domains):
        raise ValueError("names a domain twice")
    return domains


Domains = Annotated[tuple[Domain, ...], Field(min_length=2), AfterValidator(_once)]


@component
class Digits(Dataset):
    """The digits 0 to 9 from handwriting, blends with photographs, house numbers and fonts: colour images, 32 x 32.

    The paper's second benchmark (section 5.2): MNIST, MNIST-M, SVHN and Synthetic Digits. From each a run draws 20000
    images to train on from the official training part and 9000 to test on from the official test part. Smaller images
    are enlarged to 32 x 32 and grey ones get three equal channels.

    Two more domains can be generated without a download, as stand-ins: `synth_fonts` for Synthetic Digits,
    `mnist_m_made` for MNIST-M.

    Parameters:
        domains: the domains, in the order of the tables.
        copies: for MNIST-M and SVHN, whether the originals are read or smaller copies of them.
        made_train: images in the training part of each generated domain.
        made_test: images in its test part.
        pixels: "unit" divides the bytes by 255; "bytes" keeps 0 to 255, as the released code of Wen et al. does.

    LeCun, Bottou, Bengio, Haffner. Gradient-based learning applied to document recognition. Proc. IEEE 1998.
    Netzer and others. Reading Digits in Natural Images with Unsupervised Feature Learning. NIPS Workshop 2011.
    Ganin and others. Domain-Adversarial Training of Neural Networks. JMLR 2016 (MNIST-M, Synthetic Digits).
    Hull. A database for handwritten text recognition research. IEEE TPAMI 1994 (USPS).
    """

    name = "digits"
    version = 1
    licence = (
        "MNIST CC BY-SA 3.0; Synthetic Digits CC BY 4.0; SVHN non-commercial use only; of the others none is stated"
    )
    modality = "images"
    source = "LeCun et al. 1998 (MNIST), Ganin et al. 2016 (MNIST-M, Synthetic Digits), Netzer et al. 2011 (SVHN)"
    task = Task("classification", CLASSES)
    input = InputSpec((3, SIDE, SIDE))

    train: Size = 20000
    test: TestSize = 9000
    domains: Domains = ("mnist", "mnist_m", "svhn", "synth")
    copies: Copies = "original"
    made_train: Annotated[int, Field(ge=1, le=60000)] = 20000
    made_test: Annotated[int, Field(ge=1, le=10000)] = 9000
    pixels: Annotated[Literal["unit", "bytes"], AddedLater()] = "unit"

    @property
    def files(self) -> tuple[File, ...]:
        """The files of the chosen domains."""
        files: dict[File, None] = {}
        for domain in self.domains:
            files.update(dict.fromkeys(self._origin(domain).files))
        return tuple(files)

    def sizes(self, files: Files | None = None) -> dict[str, tuple[int, int]]:
        """Images of the official training and test parts."""
        return {domain: self._origin(domain).sizes for domain in self.domains}

    @property
    def notes(self) -> tuple[str, ...]:
        """Domains that are smaller than the original, and domains that are stand-ins."""
        notes = [self._origin(domain).note for domain in self.domains]
        return tuple(note for note in notes if note is not None)

    def load(self, domain: str, files: Files) -> DomainData:
        """The domain's images (n, 3, 32, 32) uint8: the official training part, then the official test part."""
        return self._origin(domain).load(files)

    def fit(self, train: Mapping[str, Inputs]) -> Callable[[str, Inputs], Inputs]:
        """Learns nothing; returns the map of bytes to float32, so that images stay bytes until chosen."""
        return scaled if self.pixels == "unit" else unscaled

    def fingerprint(self) -> str:
        """Changes with the files, the parameters, and the ingredients of generated images."""
        made = [self._origin(domain).ingredients() for domain in self.domains]
        return digest(super().fingerprint(), made)

    def _origin(self, domain: str) -> Origin:
        return origins(self.copies, (self.made_train, self.made_test))[domain]


def unscaled(_: str, images: Inputs) -> Inputs:
    """Bytes as float32 from 0 to 255."""
    return np.asarray(images, dtype=np.float32)


def scaled(_: str, images: Inputs) -> Inputs:
    """Bytes as float32 in [0, 1]."""
    return np.divide(images, np.float32(255), dtype=np.float32)
