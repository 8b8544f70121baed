"""Datasets: several domains of one task, loaded as numpy arrays."""

from __future__ import annotations

import hashlib
import inspect
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Protocol, TypeAlias

import numpy as np

from msda_bench.component.base import Added, Component, Count, component
from msda_bench.component.corruption import Corruption
from msda_bench.component.rows import Rows
from msda_bench.component.sizes import Extent, OptionalSize, Size, TestSize

if TYPE_CHECKING:
    import scipy.sparse
    from torch import Tensor

    from msda_bench.component.step import Examples

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Inputs: TypeAlias = "Array | scipy.sparse.csr_matrix"
"""Examples of one domain: a float32 or uint8 array (n, ...), a CSR matrix (n, columns), or an object array of texts."""


_LEAST, _WHOLE = 8, 64
"""Allowed numbers of digits of a sha256: those that an address may hold, and all."""
Strength: TypeAlias = Literal["weak", "strong"]
"""How much a view changes an example."""


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
            any device, and divided by 255 in each batch. They may be larger than `shape`, see `Dataset.augment`.
    """

    shape: tuple[int, ...]
    sparse: bool = False
    bytes: bool = False


@dataclass(frozen=True)
class Url:
    """A file served over HTTP(S), or as `file:`; the addresses are tried in order."""

    addresses: tuple[str, ...]


@dataclass(frozen=True)
class Sdist:
    """A source distribution that pip downloads from the user's package index, checked by hash."""

    project: str
    version: str


@dataclass(frozen=True)
class ByHand:
    """A file that cannot be downloaded; the user puts it in place.

    Attributes:
        why: who published it, and why it cannot be downloaded, in a line.
    """

    why: str


@dataclass(frozen=True)
class File:
    """A data file, identified by its bytes, or a folder that the user supplies.

    Attributes:
        path: below a data folder, with forward slashes.
        sha256: of the whole file, in lower-case hexadecimal, or its first digits, at least 8, if no more were
            published. None if only the md5 was published; also None for a file that the user makes, which is not read
            until the suite gives its checksum. For a folder: of the lines `SHA256  PATH` of its files, by path.
        size: in bytes; None if it was not published.
        origin: the source from which `msda-bench data fetch` gets it.
        md5: checked instead of an unknown sha256.
        same: (sha256, size) of files with the same data in other bytes, such as another compression; they are used
            where they are found.
    """

    path: str
    sha256: str | None
    size: int | None
    origin: Url | Sdist | ByHand
    md5: str | None = None
    same: tuple[tuple[str, int], ...] = ()

    def __post_init__(self) -> None:
        known = self.sha256 is not None or (self.md5 is not None and not isinstance(self.origin, Sdist))
        if not known and not isinstance(self.origin, ByHand):
            raise ValueError(
                f"{self.path}: a file needs a sha256, or an md5 if it is not from an sdist; only one placed by hand "
                "may have neither"
            )
        least = _WHOLE if isinstance(self.origin, Sdist) else _LEAST
        if self.sha256 is not None and len(self.sha256) < least:
            raise ValueError(f"{self.path}: its sha256 has {len(self.sha256)} digits; {least} are needed")

    @property
    def checksum(self) -> str | None:
        """The strongest known checksum, as `sha256 HEX` or `md5 HEX`; None if there is none."""
        if self.sha256 is not None:
            return f"sha256 {self.sha256}"
        return None if self.md5 is None else f"md5 {self.md5}"


class Files(Protocol):
    """Gives a dataset its files; the caller passes it to `load`."""

    def path(self, file: File) -> Path:
        """The checked local copy of a file; raises `DataError` if it is missing or its bytes are wrong."""
        ...

    def derived(self, name: str, make: Callable[[], Mapping[str, Array]]) -> Mapping[str, Array]:
        """Arrays that `make` makes once, cached under `name`, which must identify all that they depend on."""
        ...

    def rows(self, name: str, rows: Rows) -> Array:
        """As `derived`, for one array (n, *shape) of bytes that several processes make; it is mapped into memory.

        Raises:
            DataError: a line for each kind of fault in the rows, with their number, or the cache cannot be written.
        """
        ...


@dataclass(frozen=True, eq=False)
class DomainData:
    """All examples of one domain.

    Attributes:
        x: n examples (see `Inputs`).
        y: (n,) int64 class indices, or float32 values for regression.
        test: (n,) bool marking the official test examples; None if the test examples are those not drawn for training.
        identity: identifies all that `x` depends on, if that is cheaper than reading it; see `Backbone.embedding`.
        groups: (n,) whole numbers or texts, the same for rows that belong together, such as those of one recording or
            patient, here and in other domains; None if rows are independent. No row of a group is trained on in any
            domain of a run if another one is held out or tested on.
    """

    x: Inputs
    y: Array
    test: Array | None = field(default=None)
    identity: str | None = None
    groups: Array | None = None


@dataclass(frozen=True)
class Identified:
    """What a dataset found in a folder of the user's.

    Attributes:
        what: the copy of the dataset that it is, in a line.
        counts: for each domain, the examples of each class, by its name.
        lines: anything missing, odd or known to be bad, a line each.
        params: the parameters that read the folder once it lies below a data folder, except `train`.
        certain: whether the folder belongs to this dataset, rather than only having its layout.
        readable: whether the dataset reads the folder unchanged, with all of its domains.
    """

    what: str
    counts: Mapping[str, Mapping[str, int]]
    lines: tuple[str, ...]
    params: Mapping[str, Any]
    certain: bool = True
    readable: bool = True


def same_view(x: Examples, strength: Strength, key: Tensor) -> Examples:  # noqa: ARG001 - the signature of `view`
    """The examples unchanged."""
    return x


def _same(_: str, inputs: Inputs) -> Inputs:
    return inputs


_COUNTS: tuple[Any, ...] = ("Count", "int", Count, int)
_OPTIONAL_COUNTS: tuple[Any, ...] = ("Count | None", "int | None", Count | None, int | None)
"""Annotations of size parameters in older plugins, from when sizes were counts only."""


@component
class Dataset(Component, ABC):
    """A set of domains that share a task.

    Parameters that every dataset has:
        train: examples drawn at random from each domain for training (labelled in sources, unlabelled in the target): a
            count, a fraction of the domain, "all", or a mapping of these by domain; see `Size`.
        test: the maximum number of test examples drawn from the rest of the target; None for all of it.
        target_train: as `train`, for the target; None for the same as `train`.
        protocol: "held_out" tests on target examples outside training; "transductive" trains on all of the target's
            examples, unlabelled, and tests on the same ones.
        corrupt: {source: NAME, labels: shuffle} permutes the labels that a run sees of that source.
    """

    kind: ClassVar[str] = "dataset"
    licence: ClassVar[str] = "unknown"
    source: ClassVar[str] = ""
    """Who published the data, in a line."""
    modality: ClassVar[str] = "other"
    """The kind of data, a filter for results: text, images, audio, synthetic, or another word."""

    train: Size = 1000
    test: TestSize = None
    target_train: Annotated[OptionalSize, Added()] = None
    protocol: Annotated[Literal["held_out", "transductive"], Added()] = "held_out"
    corrupt: Annotated[Corruption, Added()] = None

    def __init_subclass__(cls, **given: Any) -> None:
        """Lets a dataset that declares `train: Count = 500` take sizes in every form."""
        super().__init_subclass__(**given)
        own = inspect.get_annotations(cls)
        forms = (("train", Size, _COUNTS), ("test", TestSize, _OPTIONAL_COUNTS))
        wider = {name: kind for name, kind, plain in forms if own.get(name) in plain}
        if wider:
            cls.__annotations__ = own | wider

    @property
    @abstractmethod
    def domains(self) -> tuple[str, ...]:
        """Names of all domains, in the order of the tables."""

    @property
    def targets(self) -> tuple[str, ...]:
        """Domains that may be a target; all of them unless overridden."""
        return self.domains

    def sources(self, target: str) -> tuple[str, ...]:
        """The source domains for a target; all others unless overridden."""
        return tuple(domain for domain in self.domains if domain != target)

    @property
    @abstractmethod
    def task(self) -> Task:
        """The thing to predict."""

    @property
    @abstractmethod
    def input(self) -> InputSpec:
        """The input of a backbone, after `fit`."""

    @property
    def files(self) -> tuple[File, ...]:
        """The files of the dataset; empty if it is generated."""
        return ()

    @property
    def notes(self) -> tuple[str, ...]:
        """Facts that a reader of the results must know, a line each, such as data that stand in for others."""
        return ()

    @property
    def sizes(self) -> Mapping[str, Extent]:
        """The examples of each domain, or (training, test) if it has official test examples; empty if not known.

        With it, `msda-bench validate` finds a domain that is too small without loading any.
        """
        return {}

    def extents(self, files: Files) -> Mapping[str, Extent]:
        """As `sizes`, from local files such as a list of a folder, without reading examples; `sizes` itself by default.

        With it, `validate` and `run` find domains that are too small in data whose sizes are not known beforehand.
        Empty if a file is missing or its bytes are wrong, and without domains at fault: `prepare` reports these.

        Raises:
            DataError: a line for each reason why the dataset cannot use the files with its parameters.
        """
        return self.sizes

    @property
    def shared_groups(self) -> bool:
        """Whether a group (`DomainData.groups`) may have rows in several domains, such as a recording under each noise.

        Such a dataset takes neither `train: all` in sources, nor the transductive protocol, nor a selection that leaves
        sources out: with each of them a run would see labels of the target's test groups.
        """
        return False

    @abstractmethod
    def load(self, domain: str, files: Files) -> DomainData:
        """All examples of a domain; the same ones in the same order every time.

        Raises:
            DataError: a file is missing or does not match its format.
        """

    def prepare(self, files: Files, domains: Sequence[str]) -> None:
        """Computes slow results of the domains that runs need and keeps them in the cache, before any run begins.

        Does nothing unless overridden.

        Raises:
            DataError: as `load`.
        """

    def identify(self, path: Path, sha256: str) -> Identified | None:
        """Identifies a folder or file as a copy of this dataset; None if it is not, and by default.

        Args:
            path: any folder or file of the user's.
            sha256: its checksum (see `File`).
        """
        return None

    def relatedness(self, target: str) -> Mapping[str, float]:
        """The worth of each source for a target, in percent, if it is known; empty unless overridden.

        For classification the accuracy on the target of the best classifier for the source. `msda-bench sources` shows
        it next to the weights; no method sees it.
        """
        return {}

    def fit(self, train: Mapping[str, Inputs]) -> Callable[[str, Inputs], Inputs]:
        """A feature map learned from training inputs, never from labels or test examples; no change by default.

        A vocabulary (`msda_bench.functional.fit_ngrams`) or a standardisation (`standardiser`) belongs here.

        Args:
            train: the training inputs by domain: the sources in order, then the target.

        Returns:
            The map from a domain's name and its examples, of training or test, to the backbone's input.
        """
        return _same

    def view(self, x: Examples, strength: Strength, key: Tensor) -> Examples:
        """The examples in another view, for methods that want a network to give the same answer on both; x by default.

        Args:
            x: n training examples after `fit`: a float32 tensor (n, ...), or `SparseRows`.
            strength: "weak" changes little that matters, "strong" much.
            key: (2,) int32: the source of all draws (`msda_bench.functional`), so that runs can be stacked. Pure: no
                branch on a tensor's value, nothing changed in place.

        Returns:
            As many examples of the same shape; equal for a dense and a sparse x.
        """
        return same_view(x, strength, key)

    @property
    def augmentation(self) -> tuple[str, ...]:
        """The parameters by which `augment` changes images, if they are in use; empty unless overridden.

        A suite that combines them with frozen features, which are computed from the loaded images, is refused.
        """
        return ()

    def augment(self, x: Tensor, key: Tensor | None) -> Tensor:
        """A batch of images as the network gets them; x itself by default.

        Args:
            x: (n, *kept) float32, bytes divided by 255.
            key: (2,) int32 in training: the source of all draws (`msda_bench.functional`), separate for each image, so
                that runs can be stacked. Pure: no branch on a tensor's value, nothing changed in place. None in tests
                and for validators, where nothing is drawn.

        Returns:
            (n, *input.shape) float32.
        """
        return x

    def fingerprint(self) -> str:
        """A sha256 that changes with the data: by default of the files' sha256 and the parameters."""
        identity = [[file.path, file.sha256 or file.checksum] for file in self.files]
        text = json.dumps([self.name, self.version, self.identity(), identity], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()
