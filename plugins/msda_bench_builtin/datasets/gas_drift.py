"""Gases and their concentrations, by sensors that drift over three years."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import numpy as np

from msda_bench.api import (
    AddedLater,
    Array,
    ByHand,
    DataError,
    DomainData,
    Extent,
    File,
    Files,
    InputSpec,
    Size,
    Task,
    Url,
    component,
)
from msda_bench_builtin.datasets.features import Standardised
from msda_bench_builtin.datasets.images.dataset import Sha256
from msda_bench_builtin.datasets.unpacked import reading, unpacked, zip_member

_SIZES = {
    "batch_1": 445, "batch_2": 1244, "batch_3": 1586, "batch_4": 161, "batch_5": 197,
    "batch_6": 2300, "batch_7": 3613, "batch_8": 294, "batch_9": 470, "batch_10": 3600,
}  # fmt: skip
_GASES = ("Ethanol", "Ethylene", "Ammonia", "Acetaldehyde", "Acetone", "Toluene")
"""In the order of their numbers at UCI, from 1."""
_CLASS = {name: place for place, name in enumerate(_GASES)} | {str(place + 1): place for place in range(len(_GASES))}
_FEATURES = 128
_COMMIT = "92224f33465d8f76d82d9f3083027675f23b1c18"
_ADDRESS = f"https://raw.githubusercontent.com/BrechtDewilde1/BDProject/{_COMMIT}/data/"
# Of each batch the sha256 and size as the repository has it, then compressed.
_COPIES = {
    "batch_1": (
        ("2ff13bf02d2156ee01d948a6d46202a6a95855709176d91728339fa510221861", 581027),
        ("1cfff48eb87a1dad5092860ca27eb807f340158ac25cf3f0ef5220a444e8eeb5", 228288),
    ),
    "batch_2": (
        ("d6790e1d6344db1cdcbbfecd039b88e98897ae8ad0a5d80a1ac530101f9b0dd1", 1640067),
        ("f9272109b9c81d6cf8f0cddfba6dbdd224892a239eacb7efd76496dfc25c6d92", 586816),
    ),
    "batch_3": (
        ("21b8564babf75b8b27ac3e9e03537ed44bc217a066f23dba4524af6f6bac29de", 2095686),
        ("93161516491c7520e96f8fd1d7ba6b25e46717709a3f7ca691c3412f544b4f0a", 720776),
    ),
    "batch_4": (
        ("30939c81857e501ce98aab0e606e2a720a42765189bf5e577c1255dd0b844b07", 214515),
        ("2c7e467f3c5968d6b0abe9b32de25df619950087d58a0c614f7d4c78f4b19be6", 79520),
    ),
    "batch_5": (
        ("3e2e4c791d1c4afa4c2092ad55e3cd7cdcf664f9e03187ddea102ccf547f5db3", 263243),
        ("7c78757b9aa71e62a341caade9027ba6897aee17a66aa7b0bac41995dd162604", 98476),
    ),
    "batch_6": (
        ("1d9e32f5e501b0f3e33354b469dd1955ca003614309f3b1e43fb137517ca154b", 3013566),
        ("f81a8fed8dfca0b988ebcedf5b44c6b77d93e3c5305df993bfdbebcb3a0a7fd3", 1079980),
    ),
    "batch_8": (
        ("1c6b15628bce7ab0ba8601d1c49864a78d2b283b05c060344704335324131014", 378481),
        ("e442db5d3065e95af88e316e72d8a9e0bc3fab3a069ccbc17c285616befdc085", 139612),
    ),
    "batch_9": (
        ("8deaa13dadb0098d96f0443989baa0a6ba7243a92e5f61f9ad1349a3a0ff087a", 604663),
        ("b6a7a047f99a601ed595d903a9d2a3fbcbb9b5600d69a74e2cda4603e5c6442e", 211048),
    ),
}
_UCI = ByHand(
    "UCI's data set 270, whose checksum nobody published: https://archive.ics.uci.edu/dataset/270 has the archive"
)
_BREAKS = re.compile(r"[,; ]+")


def _copied(domain: str) -> File:
    published, compressed = _COPIES[domain]
    name = f"{domain.replace('_', '')}.dat"
    return File(f"gas_drift/{name}.xz", *published, Url((_ADDRESS + name,)), same=(compressed,))


@component
class GasDrift(Standardised):
    """Which of six gases, or how much of it, do 16 sensors smell? Ten batches of measurements over 36 months.

    Each sensor gives eight numbers: how far its resistance changes, and how fast. Sensors age and are poisoned, so that
    batches differ. Batches 3, 4 and 5 have no toluene.

    Parameters:
        mode: "classification" predicts the gas, "regression" the decimal logarithm of its concentration in parts per
            million by volume.
        copies: "github" reads eight of the ten batches from a public copy, which can be fetched; batches 7 and 10 are
            too large for it to be checked here. "uci" reads all ten from UCI's archive, which you place at
            `gas_drift/uci.zip`.
        sha256: of that archive, which is not read without it; the message says which it has.
        gases: "shared" leaves out toluene, the last of the six, which some batches lack.

    Vergara, Vembu, Ayhan, Ryan, Homer, Huerta. Chemical gas sensor drift compensation using classifier ensembles.
    Sensors and Actuators B: Chemical 2012.
    """

    name = "gas_drift"
    version = 1
    licence = "CC BY 4.0, as the UCI repository states"
    modality = "signals"
    source = "Vergara et al. 2012, UCI machine learning repository (data set 270)"
    input = InputSpec((_FEATURES,))

    train: Size = 0.5
    mode: Literal["classification", "regression"] = "classification"
    copies: Literal["github", "uci"] = "github"
    sha256: Sha256 | None = None
    gases: Annotated[Literal["all", "shared"], AddedLater()] = "all"

    @property
    def domains(self) -> tuple[str, ...]:
        """The batches of the copy, in the order of time."""
        return tuple(_SIZES if self.copies == "uci" else _COPIES)

    @property
    def task(self) -> Task:
        """The gas, in the order of UCI's numbers, or the logarithm of its concentration."""
        if self.mode == "regression":
            return Task("regression")
        return Task("classification", len(_GASES) - (self.gases == "shared"))

    @property
    def files(self) -> tuple[File, ...]:
        """UCI's archive, or a file for each batch."""
        if self.copies == "uci":
            return (File("gas_drift/uci.zip", self.sha256, None, _UCI),)
        return tuple(map(_copied, _COPIES))

    @property
    def notes(self) -> tuple[str, ...]:
        """Which batches and gases there are, and how the features are standardised."""
        eight = ("gas_drift: eight of the ten batches; 7 and 10 are missing.",) if self.copies == "github" else ()
        five = ("gas_drift: five of the six gases; toluene is left out.",) if self.gases == "shared" else ()
        return (*eight, *five, *super().notes)

    def sizes(self, files: Files | None = None) -> dict[str, Extent]:
        """Measurements of each batch; not known without toluene."""
        if self.gases == "shared":
            return {}
        return {domain: _SIZES[domain] for domain in self.domains}

    def load(self, domain: str, files: Files) -> DomainData:
        """The measurements of one batch, (n, 128) float32, in the file's order, of the gases that are read."""
        file = self.files[0 if self.copies == "uci" else self.domains.index(domain)]
        path = files.path(file)
        name = json.dumps([self.name, self.version, domain, file.checksum])
        arrays = files.derived(name, lambda: _arrays(path, domain)._asdict())
        if self.gases == "shared":
            shared = arrays["gas"] < len(_GASES) - 1
            arrays = {part: values[shared] for part, values in arrays.items()}
        if self.mode == "classification":
            return DomainData(arrays["x"], arrays["gas"])
        return DomainData(arrays["x"], np.log10(arrays["ppm"]).astype(np.float32))


class _Measurements(NamedTuple):
    """Features (n, 128) float32, the number of the gas (n,) int64, and its concentration (n,) float64."""

    x: Array
    gas: Array
    ppm: Array


def _arrays(path: Path, domain: str) -> _Measurements:
    with reading(path, f"{domain} cannot be read"):
        found = _measurements(_text(path, f"{domain.replace('_', '')}.dat").splitlines())
    if len(found.gas) != _SIZES[domain]:
        what = f"{len(found.gas)} measurements of {domain}, expected {_SIZES[domain]}"
        raise DataError(f"{path}: holds {what}; replace the file")
    return found


def _text(path: Path, name: str) -> str:
    """The lines of a batch: of UCI's archive, compressed, or plain."""
    with zip_member(path, name) if zipfile.is_zipfile(path) else unpacked(path) as stream:
        return stream.read().decode("ascii")


def _measurements(lines: Iterable[str]) -> _Measurements:
    """The measurements in lines `gas,ppm,value,...`, or `gas;ppm 1:value 2:value ...` as UCI has them.

    Raises:
        ValueError: a line is another one; its number is named.
    """
    rows, gases = [], []
    for number, line in enumerate(lines, 1):
        gas, *values = _BREAKS.split(line.strip(" ,"))
        if gas not in _CLASS or len(values) != _FEATURES + 1:
            raise ValueError(f"line {number} is not a gas, its concentration and {_FEATURES} numbers")
        gases.append(_CLASS[gas])
        rows.append([_value(number, place, text) for place, text in enumerate(values)])
    table = np.array(rows, np.float64).reshape(-1, _FEATURES + 1)
    if not np.isfinite(table).all() or (table[:, 0] <= 0).any():
        raise ValueError("a number is not finite, or a concentration is not above 0")
    return _Measurements(table[:, 1:].astype(np.float32), np.array(gases, np.int64), table[:, 0])


def _value(line: int, place: int, text: str) -> float:
    """A value, before which UCI writes its place."""
    before, _, value = text.rpartition(":")
    if before and before != str(place):
        raise ValueError(f"line {line} has value {before!r} in the place of {place}")
    return float(value)
