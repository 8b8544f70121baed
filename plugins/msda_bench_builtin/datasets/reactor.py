"""A simulated chemical reactor in seven modes of operation."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from msda_bench.api import DomainData, File, Files, InputSpec, Size, Task, Url, component
from msda_bench_builtin.datasets.features import Standardised, read_table

_FEATURES, _CLASSES, _COLUMNS = 14, 13, 18
_COMMIT = "cb3079c4bbd6c0c594e80f907449866768025370"
_FILE = File(
    "reactor/cstr_acfmeandata.npy",
    "7f417be9f27918575b0f32046c74f8928d110ca3da97336645c4f22e46b68075",
    411968,
    Url((f"https://raw.githubusercontent.com/eddardd/CrossDomainFaultDiagnosis/{_COMMIT}/data/cstr_acfmeandata.npy",)),
)


@component
class Reactor(Standardised):
    """Runs of a simulated stirred-tank reactor in seven modes of operation: in which of 13 states is it?

    Each run is 14 numbers: two of each of seven measured signals.

    Montesuma, Mulas, Corona, Mboula. Cross-domain fault diagnosis through optimal transport for a CSTR process.
    IFAC-PapersOnLine 2022.
    """

    name = "reactor"
    version = 1
    licence = "MIT"
    modality = "tabular"
    source = "Montesuma et al. 2022 (eddardd/CrossDomainFaultDiagnosis on GitHub), simulated"
    published: ClassVar = {"mode_0": 1300} | {f"mode_{mode}": 260 for mode in range(1, 7)}
    task = Task("classification", _CLASSES)
    input = InputSpec((_FEATURES,))
    files = (_FILE,)

    train: Size = 130

    def load(self, domain: str, files: Files) -> DomainData:
        """The runs in one mode, (n, 14) float32, in the file's order."""
        table = read_table(files.path(_FILE), _COLUMNS)
        rows = table[table[:, _FEATURES + 1] == self.domains.index(domain)]
        return DomainData(rows[:, :_FEATURES].astype(np.float32), rows[:, _FEATURES].astype(np.int64))
