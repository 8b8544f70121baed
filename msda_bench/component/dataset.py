"""Datasets: several domains of one task, loaded as numpy arrays."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NotRequired, Protocol, TypeAlias, runtime_checkable

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, with_config
from typing_extensions import TypedDict

from msda_bench.component.base import AddedLater, Component, component
from msda_bench.component.domain_data import DomainData, Inputs, InputSpec, Strength
from msda_bench.component.files import Array, File, Files
from msda_bench.component.sizes import Extent, OptionalSize, Size, TestSize
from msda_bench.component.task import Task

if TYPE_CHECKING:
    from torch import Tensor

    from msda_bench.component.step import Examples, Group


def _stratify(value: object) -> object:
    if value is True or value is False or value == "shares":
        return value
    raise ValueError(f"must be true, false or shares, not {value!r}")


Stratify: TypeAlias = Annotated[bool | Literal["shares"], BeforeValidator(_stratify)]
"""Whether groups are drawn class by class, and whether each part gets its share of a class."""


@dataclass(frozen=True)
class Identified:
    """What a dataset found in a file or folder of the user's.

    Attributes:
        what: what it is, in a line.
        counts: for each domain, the examples of each class, by its name.
        lines: anything missing, wrong or proposed, a line each.
        params: the parameters that read it; `train` may be left out.
        suite: the settings of a first suite below its `dataset`, each with a comment or "". Empty if the dataset does
            not read the folder unchanged, with all of its domains.
        doubts: why the owner may mean something else, and what to do then, a line each; with any, a suite is written
            only if the user asks for it anyway.
        read: how much was read of how much, and what was not, as in `read 20 of 24 files; not read: 4 .heic`.
    """

    what: str
    counts: Mapping[str, Mapping[str, int]]
    lines: Sequence[str]
    params: Mapping[str, Any]
    suite: Mapping[str, tuple[Any, str]]
    doubts: Sequence[str] = ()
    read: str = ""


@runtime_checkable
class Identifies(Protocol):
    """A dataset that `msda-bench data identify` asks what a file or folder is."""

    def identify(self, path: Path, sha256: str, options: Mapping[str, str]) -> Identified | None:
        """What was found; None if this dataset has nothing to do with it.

        Args:
            path: any file or folder of the user's, absolute.
            sha256: its checksum (see `File`).
            options: the options of the command that the user gave, by their names, such as `domain` and `label`.

        Raises:
            DataError: this dataset would read it, but cannot, or needs other options.
        """
        ...


@dataclass(frozen=True, eq=False)
class NewRows:
    """Rows of a new file, which a model is to answer.

    Attributes:
        data: n rows, as `Dataset.load` gives those of a domain without labels.
        beside: by name what is carried through to the answers, such as identifiers: (n,) texts each.
        domains: (n,) texts, each row's domain; None if the file names none.
        lines: what is doubtful, or not used, a line each.
        units: numbers that may have another unit, a line each; a method that standardises each domain by itself makes
            them alike.
    """

    data: DomainData
    beside: Mapping[str, Sequence[str]]
    domains: Array | None = None
    lines: tuple[str, ...] = ()
    units: tuple[str, ...] = ()


class NewRowsReader(ABC):
    """Reads new files as a dataset reads its own. It is stored with a model, so it can be pickled and needs no file.

    Attributes:
        classes: the names of the classes, in the order of their numbers; empty for a regression.
        sees_target: whether features of a row depend on the other rows of its domain, as where each domain is
            standardised by itself.
    """

    classes: tuple[str, ...] = ()
    sees_target: bool = False

    @abstractmethod
    def read(self, path: Path, files: Files) -> NewRows:
        """The rows of a file or folder, whose labels are not used.

        Raises:
            DataError: a line for each reason why they cannot be answered right.
        """

    def stored(self, features: Callable[[str, Inputs], Inputs]) -> NewRowsReader:
        """The reader as it is stored with a model, which may lack what no feature needs; itself unless overridden.

        Args:
            features: what the dataset's `fit` gave for the model.
        """
        return self


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

    A dataset needs a name, `domains`, `task`, `input` and `load`. It may state the facts below and override the other
    methods, such as `fit`; one that changes images at random in training also `Augments`.

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
            two groups; "shares" also gives test and training a like share of each class's groups, which a rare class
            needs; by default, at random.
        duplicates: "drop" leaves out the rows of each domain that are equal to an earlier row of it, whatever their
            labels; an official test example counts as earlier than the others. "keep" leaves all of them.

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
    target_train: Annotated[OptionalSize, AddedLater()] = None
    protocol: Annotated[Literal["held_out", "transductive"], AddedLater()] = "held_out"
    stratify: Annotated[Stratify, AddedLater()] = False
    corrupt: Annotated[Corruption | None, AddedLater()] = None
    label_shift: Annotated[Annotated[LabelShift, AfterValidator(_shift)] | None, AddedLater()] = None
    duplicates: Annotated[Literal["keep", "drop"], AddedLater()] = "keep"

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

    def fit(self, train: Mapping[str, Inputs]) -> Callable[[str, Inputs], Inputs]:
        """A feature map, such as a vocabulary or a standardisation; it changes nothing unless overridden.

        It is learned from training inputs, never from labels or test examples. `msda_bench.functional.fit_ngrams` and
        `standardiser` are such maps.

        Args:
            train: the training inputs by domain: the sources in order, then the target.

        Returns:
            The map from a domain's name and its examples, of training or test, to the backbone's input.
        """
        return _unchanged

    def new_rows_reader(self, files: Files) -> NewRowsReader | None:
        """What reads new files for a model that learned from these data; None, if there is none, unless overridden.

        Raises:
            DataError: a file of the dataset is missing or wrong.
        """
        return None

    def sizes(self, files: Files | None = None) -> Mapping[str, Extent]:
        """The examples of each domain, or (training, test) if it has official test examples; empty if not known.

        None are known unless overridden. With it, `msda-bench validate` finds a domain that is too small without
        loading any.

        Args:
            files: None asks for sizes that are known beforehand. Otherwise they may come from local files, such as a
                list of a folder, without domains at fault; `prepare` or `load` reports these and missing files.

        Raises:
            DataError: a line for each reason why the dataset cannot use the files with its parameters.
        """
        return {}

    def sources(self) -> Mapping[str, Group]:
        """The source domains of each target; for each domain all others unless overridden."""
        sources = {}
        for target in self.domains:
            sources[target] = tuple(domain for domain in self.domains if domain != target)
        return sources

    def prepare(self, files: Files, domains: Sequence[str]) -> None:
        """Keeps slow results that these domains need in the cache, before any run begins; nothing unless overridden.

        Raises:
            DataError: as `load`.
        """

    def view(self, x: Examples, strength: Strength, key: Tensor) -> Examples:
        """The examples in another view, for methods that want the same answer on both; unchanged unless overridden.

        Args:
            x: n training examples after `fit`: a float32 tensor (n, ...), or `SparseRows`.
            strength: "weak" changes little that matters, "strong" much.
            key: (2,) int32: the source of all draws (`msda_bench.functional`), so that runs can be stacked. Pure: no
                branch on a tensor's value, nothing changed in place.

        Returns:
            As many examples of the same shape; equal for a dense and a sparse x.
        """
        return x

    def augmentation(self) -> tuple[str, ...]:
        """The parameters in use by which it augments images (`Augments`); none unless overridden.

        With any, a suite with frozen features is refused: those are computed from the loaded images, once.
        """
        return ()

    def relatedness(self, target: str) -> Mapping[str, float]:
        """The worth of each source for a target, in percent, if it is known, as of a generated dataset; else empty.

        For classification the accuracy on the target of the best classifier for the source. `msda-bench sources` shows
        it next to the weights; no method sees it.
        """
        return {}

    def describe(self) -> Sequence[str]:
        """What it made of a file of the user's, a line for each thing to check, which `msda-bench validate` prints."""
        return ()

    def fingerprint(self) -> str:
        """A sha256 that changes with the data: by default of the files' sha256 and the parameters."""
        identity = [[file.path, file.sha256 or file.checksum] for file in self.files]
        text = json.dumps([self.name, self.version, self.identity(), identity], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


def _unchanged(_: str, inputs: Inputs) -> Inputs:
    return inputs


def sizes_of(data: Dataset, files: Files | None = None) -> dict[str, Extent]:
    """The known sizes of a dataset's domains; none if duplicates are left out of them.

    Raises:
        TypeError: the dataset gives something else than counts.
        DataError: as `Dataset.sizes`.
    """
    sizes = dict(data.sizes(files))
    for domain, size in sizes.items():
        parts = size if isinstance(size, tuple) else (size,)
        if len(parts) not in {1, 2} or any(type(part) is not int for part in parts):
            raise TypeError(f"sizes gives {size!r} for {domain!r}; the contract asks for a count, or two")
    return {} if drops_duplicates(data) else sizes


def drops_duplicates(data: Dataset) -> bool:
    """Whether rows that are equal to an earlier one of their domain are left out."""
    return data.duplicates == "drop"


def corrupted_source(data: Dataset) -> str | None:
    """The source whose labels are shuffled; None if a plugin uses that parameter for something else."""
    return data.corrupt["source"] if isinstance(data.corrupt, Mapping) else None


def shifted_domain(data: Dataset, target: str) -> str | None:
    """The domain whose shares of classes are changed in a run of this target; None if none's are."""
    if not isinstance(data.label_shift, Mapping):
        return None
    return target if data.label_shift["domain"] == TARGET else str(data.label_shift["domain"])
