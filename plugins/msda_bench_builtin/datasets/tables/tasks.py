"""Tasks that are tables: hearts of four hospitals, and the solubility of molecules."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Annotated, ClassVar, Literal, TypeAlias

import numpy as np

from msda_bench.api import (
    AddedLater,
    Array,
    DomainData,
    File,
    Files,
    Inputs,
    InputSpec,
    Size,
    Task,
    TestSize,
    Url,
    component,
)
from msda_bench_builtin.datasets.features import Published
from msda_bench_builtin.datasets.tables.columns import Gaps, InputColumn, Plan, Standardise, encoded, fitted, ranges_of
from msda_bench_builtin.datasets.tables.read import Column, delimited

_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases/heart-disease/"
_AQSOL = "https://raw.githubusercontent.com/mcsorkun/AqSolDB/8e02b548fd9a78778ff89a5aa9a460d1a289cc3a/results/"
TaskRows: TypeAlias = tuple[dict[str, Column], Array, Array, Array | None]


@component
class TableTask(Published):
    """Rows of a published table, with the same encoding as a table of the user's.

    Parameters:
        standardise: "sources" gives each number mean 0 and variance 1 over the training rows of all sources, "domain"
            over those of its own domain, "none" leaves it.
    """

    plan: ClassVar[Plan]

    train: Size = 0.5
    standardise: Standardise = "sources"

    @property
    def input(self) -> InputSpec:
        """Numbers, and a column for each category."""
        return InputSpec((self.plan.width,))

    @abstractmethod
    def rows(self, files: Files) -> TaskRows:
        """The inputs of all domains; and of each row its domain's place in `domains`, its label, and its group or None.

        Raises:
            DataError: a file is missing or damaged.
        """

    def load(self, domain: str, files: Files) -> DomainData:
        """The rows of a domain, float32, in the order of the file."""
        columns, places, labels, groups = self.rows(files)
        mine = places == self.domains.index(domain)
        x = encoded(self.plan, columns, ranges_of(self.plan, columns), scaled=self.standardise != "none")
        return DomainData(x[mine], labels[mine], groups=None if groups is None else groups[mine])

    def fit(self, train: Mapping[str, Inputs]) -> Callable[[str, Inputs], Inputs]:
        """Learns from training rows how columns become numbers."""
        return fitted(self.plan, train, self.standardise)


_HEADER = "age,sex,cp,trestbps,chol,fbs,restecg,thalach,exang,oldpeak,slope,ca,thal,target"
_HOSPITALS = (
    ("processed.cleveland.data", "a74b7efa387bc9d108d7d0115d831fe9b414b29ae7124f331b622b4efa0427c8", 18461,
     ("417c9c9b4786a091ccd53c141513ffb1e5bd492afd4c01c87f76228d23c66910", 18534)),
    ("processed.hungarian.data", "d1ad108f785768cd3d7e82dc522e6f5a61eea93cccfb3a46ee8076f73fc3d796", 10263,
     ("d5c34e6c57d3cb1213d542bab964eab45dfcc34dfaa9a4585861943ad7db63fb", 10342)),
    ("processed.switzerland.data", "834a405ccf5b66ab4056bb77794adc8df0b7125186454c0a1d002d33c6c3b314", 4109,
     ("5c325b1a8ce31b82c58e0dbbe3e5e54f0f685fead727c228fcb22356de706c76", 3915)),
    ("processed.va.data", "e7c93d8d0d2acdadfa4c5e8de768e2191e7f618b952e29623f1f0d5949ff6b8f", 6737,
     ("7768a433fcb7971f4e3667e7ee081c84ac7bde9903e3dcc59cab887933a52da3", 6118)),
)  # fmt: skip
"""Of each file its name, and sha256 and size as UCI has it, then with a header line."""


@component
class Hospitals(TableTask):
    """Whether a patient's coronary arteries are narrowed, from 13 findings of four hospitals, many of them missing.

    A diagnosis more than a benchmark: from 36 to 93 % of the patients are ill, so that most of what differs between the
    hospitals is how often; look at `balanced_accuracy`. A cholesterol or blood pressure of 0 counts as missing.

    Parameters:
        gaps: "mark" has columns that say where a value was missing, which tells much about the hospital; "fill" hides
            that: a missing number is the median, a missing category the most frequent one of the sources.

    Detrano, Janosi, Steinbrunn, Pfisterer, Schmid, Sandhu, Guppy, Lee, Froelicher. International application of a new
    probability algorithm for the diagnosis of coronary artery disease. American Journal of Cardiology 1989.
    """

    name = "hospitals"
    version = 1
    licence = "CC BY 4.0, as the UCI repository states"
    modality = "tabular"
    source = "Detrano et al. 1989, from the UCI machine learning repository (data set 45)"
    task = Task("classification", 2)  # no vessel narrowed by half (0), or at least one (1)
    files = tuple(
        File(f"hospitals/{name}", sha256, size, Url((f"{_UCI}{name}",)), same=(again,))
        for name, sha256, size, again in _HOSPITALS
    )
    published: ClassVar = {"cleveland": 303, "hungary": 294, "switzerland": 123, "long_beach": 200}
    plan = Plan(
        (
            InputColumn("age"),
            InputColumn("sex", ("0", "1")),
            InputColumn("cp", ("1", "2", "3", "4")),
            InputColumn("trestbps", gaps=True),
            InputColumn("chol", gaps=True),
            InputColumn("fbs", ("0", "1", "")),
            InputColumn("restecg", ("0", "1", "2", "")),
            InputColumn("thalach", gaps=True),
            InputColumn("exang", ("0", "1", "")),
            InputColumn("oldpeak", gaps=True),
            InputColumn("slope", ("1", "2", "3", "")),
            InputColumn("ca", gaps=True),
            InputColumn("thal", ("3", "6", "7", "")),
        )
    )

    gaps: Annotated[Gaps, AddedLater()] = "mark"

    @property
    def notes(self) -> tuple[str, ...]:
        """Whether missing values are hidden."""
        return ("hospitals: missing values are filled, and not marked.",) if self.gaps == "fill" else ()

    def fit(self, train: Mapping[str, Inputs]) -> Callable[[str, Inputs], Inputs]:
        """Learns from training rows how columns become numbers, and what fills gaps."""
        return fitted(replace(self.plan, gaps=self.gaps), train, self.standardise)

    def rows(self, files: Files) -> TaskRows:
        """All patients; see `TableTask`."""
        texts = [files.path(file).read_text(encoding="ascii") for file in self.files]
        bodies = [text[text.index("\n") + 1 :] if text.startswith("age") else text for text in texts]
        lines = [line for body in bodies for line in body.splitlines() if line]
        text = "\n".join([_HEADER, *lines])
        columns = delimited(files.path(self.files[0]), text)
        for name in ("trestbps", "chol"):
            column = columns[name]
            is_zero = np.isin(column.codes, np.flatnonzero(column.numbers == 0))
            columns[name] = Column.of(column.texts, np.where(is_zero, -1, column.codes))
        target = columns.pop("target")
        is_ill = (target.numbers > 0).astype(np.int64)
        places = np.repeat(np.arange(len(self.domains)), list(self.published.values()))
        return columns, places, is_ill[target.codes], None


_DESCRIPTORS = (
    "MolWt", "MolLogP", "MolMR", "HeavyAtomCount", "NumHAcceptors", "NumHDonors", "NumHeteroatoms",
    "NumRotatableBonds", "NumValenceElectrons", "NumAromaticRings", "NumSaturatedRings", "NumAliphaticRings",
    "RingCount", "TPSA", "LabuteASA", "BalabanJ", "BertzCT",
)  # fmt: skip
_SOLUBILITY = File(
    "solubility/data_curated.csv",
    "363a42a4e4ea8e6039758146d34efdd95cde2da81c665316cacc1869e0a805ed",
    3750252,
    Url((f"{_AQSOL}data_curated.csv",)),
)
_POOR, _FAIR = -4.0, -2.0
_SKELETON = 14
"""Letters of an InChIKey that stand for which atoms are bound to which."""


@component
class Solubility(TableTask):
    """How well molecules dissolve in water, from 17 descriptors: four collections of measurements.

    The collections are the four largest of nine, by the first letter of a molecule's number. Molecules of one skeleton,
    such as stereoisomers, have the same descriptors and nearly the same solubility, so that skeletons are the groups.

    Parameters:
        mode: "classification" predicts poor (below -4), fair, or good (-2 or more); "regression" the logarithm itself.

    Sorkun, Khetan, Er. AqSolDB, a curated reference set of aqueous solubility and 2D descriptors for a diverse set of
    compounds. Scientific Data 2019.
    """

    name = "solubility"
    version = 1
    licence = "CC0 1.0"
    modality = "tabular"
    source = "Sorkun, Khetan and Er 2019 (mcsorkun/AqSolDB on GitHub)"
    files = (_SOLUBILITY,)
    shared_groups = True
    published: ClassVar = {"A": 3656, "B": 3542, "C": 1325, "F": 798}
    plan = Plan(tuple(map(InputColumn, _DESCRIPTORS)))

    test: TestSize = 0.25
    mode: Literal["classification", "regression"] = "classification"

    @property
    def task(self) -> Task:
        """Poor (0), fair (1) or good (2), or the logarithm of the solubility in mol per litre."""
        if self.mode == "regression":
            return Task("regression")
        return Task("classification", 3)

    def rows(self, files: Files) -> TaskRows:
        """All molecules; see `TableTask`."""
        path = files.path(_SOLUBILITY)
        columns = delimited(path, path.read_text(encoding="utf-8"))
        numbers = columns["ID"]
        solubility = columns["Solubility"]
        place_of = {letter: place for place, letter in enumerate(self.domains)}
        places = np.array([place_of.get(text[0], -1) for text in numbers.texts])
        values = solubility.values
        if self.mode == "classification":
            labels = (values >= _POOR).astype(np.int64) + (values >= _FAIR)
        else:
            labels = values.astype(np.float32)
        keys = columns["InChIKey"]
        skeletons = np.array([text[:_SKELETON] for text in keys.texts])
        inputs = {name: columns[name] for name in _DESCRIPTORS}
        return inputs, places[numbers.codes], labels, skeletons[keys.codes]
