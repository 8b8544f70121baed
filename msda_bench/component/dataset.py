"""Datasets: several domains of one task, loaded as numpy arrays."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NotRequired, TypeAlias

from pydantic import AfterValidator, ConfigDict, Field, with_config
from typing_extensions import TypedDict

from msda_bench.component.base import Added, Component, component
from msda_bench.component.files import Array, File, Files
from msda_bench.component.sizes import OptionalSize, Size, TestSize

if TYPE_CHECKING:
    import scipy.sparse

Inputs: TypeAlias = "Array | scipy.sparse.csr_matrix"
"""Examples of one domain: a float32 or uint8 array (n, ...), a CSR matrix (n, columns), or an object array of texts."""


@dataclass(frozen=True)
class Task:
    """The thing to predict: one of `classes` labels (int64, 0-based), or a real number (float32)."""

    kind: Literal["classification", "regression"]
    classes: int = 0

    @property
    def outputs(self) -> int:
        """Width of the predictor's output."""
        return self.classes if self.kind == "classification" else 1


@dataclass(frozen=True)
class InputSpec:
    """The form of an example for a backbone.

    Attributes:
        shape: of an example for the backbone.
        sparse: whether it is a bag of words, given as a CSR matrix.
        bytes: whether the dataset loads uint8 examples, such as images, and has no `fit`: they are stored as bytes on
            any device, and divided by 255 in each batch. They may be larger than `shape`, see `Augments.augment`.
        texts: whether the dataset gives texts of the examples as written, for a backbone that reads; see
            `DomainData.texts`.
        beside: how many of the first columns are of no text; such a backbone gets them after its own features.
    """

    shape: tuple[int, ...]
    sparse: bool = False
    bytes: bool = False
    texts: bool = False
    beside: int = 0


@dataclass(frozen=True, eq=False)
class DomainData:
    """All examples of one domain.

    Attributes:
        x: n examples (see `Inputs`).
        y: (n,) int64 class indices, or float32 values for regression; of `Dataset.unlabelled_domains` -1 or NaN.
        test: (n,) bool marking the official test examples; None if the test examples are those not drawn for training.
        identity: identifies all that `x` depends on, if that is cheaper than reading it; see `Backbone.embedding`.
        groups: (n,) whole numbers or texts, the same for rows that belong together, such as those of one recording or
            patient, here and in other domains; None if rows are independent. No row of a group is trained on in any
            domain of a run if another one is held out or tested on.
        texts: (n,) object array of str, texts of the examples as written, which a backbone that reads gets in place of
            `x`, except its first columns (`InputSpec.beside`); None if `x` holds them, or without `InputSpec.texts`.
        predictions: (n, task.outputs) float32, outputs of another model that come with the data: logits, probabilities,
            1 for a predicted class, or numbers; NaN for rows without one. None if there are none. Only a `GivenScheme`
            shows them.
        places: (n,) int64, where the examples lie among all rows of the domain in the user's file, for
            `load_predictions`; None if all are here.
    """

    x: Inputs
    y: Array
    test: Array | None = field(default=None)
    identity: str | None = None
    groups: Array | None = None
    texts: Array | None = None
    predictions: Array | None = None
    places: Array | None = None


_STRICT = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


@with_config(_STRICT)
class Corruption(TypedDict):
    """The source whose labels are permuted."""

    source: str
    labels: Literal["shuffle"]


def _shift(shift: Any) -> Any:
    if ("shares" in shift) == ("dirichlet" in shift):
        raise ValueError("must have either shares, a number for each class, or dirichlet, a strength")
    if "shares" in shift and abs(sum(shift["shares"]) - 1) > _SUM:
        raise ValueError(f"shares must sum to 1, not to {sum(shift['shares']):g}")
    return shift


@with_config(_STRICT)
class LabelShift(TypedDict):
    """The shares of classes of a domain: as given, or drawn from a Dirichlet distribution of this strength."""

    domain: str
    shares: NotRequired[Annotated[list[Annotated[float, Field(ge=0, le=1)]], Field(min_length=2)]]
    dirichlet: NotRequired[Annotated[float, Field(ge=0.05)]]


TARGET = "target"
"""In `label_shift`, the target of each run."""
_SUM = 1e-6


@component
class Dataset(Component, ABC):
    """A set of domains that share a task.

    A dataset needs a name, `domains`, `task`, `input` and `load`. It may state the facts below, and have methods that
    are looked for by their names, such as `fit`; see the protocols in `msda_bench.component.abilities`.

    Parameters that every dataset has:
        train: examples drawn at random from each domain for training (labelled in sources, unlabelled in the target): a
            count, a fraction of the domain, "all", or a mapping of these by domain; see `Size`.
        test: the maximum number of test examples drawn from the rest of the target; None for all of it.
        target_train: as `train`, for the target; None for the same as `train`.
        protocol: "held_out" tests on target examples outside training; "transductive" trains on all of the target's
            examples, unlabelled, and tests on the same ones.
        corrupt: {source: NAME, labels: shuffle} permutes the labels that a run sees of that source.
        label_shift: {domain: NAME, shares: [...]} leaves out rows of a domain until its classes have these shares;
            {domain: NAME, dirichlet: STRENGTH} draws the shares for each target and seed. The domain `target` is the
            target of each run.
        stratify: draws groups (`DomainData.groups`) class by class, so that training has rows of every class that has
            two groups; by default, at random.

    Facts:
        licence: of the data.
        source: who published the data, in a line.
        modality: the kind of data, a filter for results: text, images, audio, synthetic, or another word.
        shared_groups: whether a group (`DomainData.groups`) may have rows in several domains, such as a recording under
            each noise. Such a dataset takes neither `train: all` in sources, nor the transductive protocol, nor a
            selection that leaves sources out: with each a run would see labels of the target's test groups.
        files: the files of the dataset; empty if it is generated.
        notes: what a reader of the results must know, a line each, such as data that stand in for others.
    """

    kind: ClassVar[str] = "dataset"
    licence: ClassVar[str] = "unknown"
    source: ClassVar[str] = ""
    modality: ClassVar[str] = "other"
    shared_groups: ClassVar[bool] = False

    train: Size = 1000
    test: TestSize = None
    target_train: Annotated[OptionalSize, Added()] = None
    protocol: Annotated[Literal["held_out", "transductive"], Added()] = "held_out"
    stratify: Annotated[bool, Added()] = False
    corrupt: Annotated[Corruption | None, Added()] = None
    label_shift: Annotated[Annotated[LabelShift, AfterValidator(_shift)] | None, Added()] = None

    @property
    @abstractmethod
    def domains(self) -> tuple[str, ...]:
        """Names of all domains, in the order of the tables."""

    @property
    @abstractmethod
    def task(self) -> Task:
        """The thing to predict."""

    @property
    @abstractmethod
    def input(self) -> InputSpec:
        """The input of a backbone, after `fit` if the dataset has it."""

    @abstractmethod
    def load(self, domain: str, files: Files) -> DomainData:
        """All examples of a domain; the same ones in the same order every time.

        Raises:
            DataError: a file is missing or does not match its format.
        """

    @property
    def files(self) -> tuple[File, ...]:
        """None unless overridden."""
        return ()

    @property
    def unlabelled_domains(self) -> tuple[str, ...]:
        """Domains without any label, which are targets and never sources (see `sources`); none unless overridden."""
        return ()

    @property
    def gives_predictions(self) -> bool:
        """Whether `DomainData.predictions` come with the data; False unless overridden."""
        return False

    @property
    def notes(self) -> tuple[str, ...]:
        """None unless overridden."""
        return ()

    def fingerprint(self) -> str:
        """A sha256 that changes with the data: by default of the files' sha256 and the parameters."""
        identity = [[file.path, file.sha256 or file.checksum] for file in self.files]
        text = json.dumps([self.name, self.version, self.identity(), identity], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


def corrupted_source(data: Dataset) -> str | None:
    """The source whose labels are shuffled; None if a plugin uses that parameter for something else."""
    return data.corrupt["source"] if isinstance(data.corrupt, Mapping) else None


def shifted_domain(data: Dataset, target: str) -> str | None:
    """The domain whose shares of classes are changed in a run of this target; None if none's are."""
    if not isinstance(data.label_shift, Mapping):
        return None
    return target if data.label_shift["domain"] == TARGET else str(data.label_shift["domain"])
