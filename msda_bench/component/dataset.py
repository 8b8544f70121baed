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
"""Digits of a sha256: those that an address may hold, and all."""
Strength: TypeAlias = Literal["weak", "strong"]
"""How much a view changes an example."""


@dataclass(frozen=True)
class Task:
    """What is predicted: one of `classes` labels (int64, 0-based), or a real number (float32)."""

    kind: Literal["classification", "regression"]
    classes: int = 0

    @property
    def outputs(self) -> int:
        """Width of the predictor's output."""
        return self.classes if self.kind == "classification" else 1


@dataclass(frozen=True)
class InputSpec:
    """What one example is to a backbone.

    Attributes:
        shape: as the backbone sees it.
        sparse: a bag of words, given as a CSR matrix.
        bytes: the dataset loads uint8 examples, such as images, and has no `fit`: they are kept as they are, on any
            device, and divided by 255 in each batch. They may be larger than `shape`, see `Dataset.augment`.
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
        why: who published it, and why it is not downloaded, in a line.
    """

    why: str


@dataclass(frozen=True)
class File:
    """A data file, identified by its bytes, or a folder that the user supplies.

    Attributes:
        path: where it lies below a data folder, with forward slashes.
        sha256: of the whole file, in lower-case hexadecimal, or its first digits, 8 at least, where no more was ever
            published; None where no more than the md5 was, and of a file that the user makes until the suite gives its
            checksum: it is not read before that. Of a folder it is that of the lines `SHA256  PATH` of its files, by
            path.
        size: in bytes; None where it was never published.
        origin: where `msda-bench data fetch` gets it.
        md5: checked in place of an unknown sha256.
        same: (sha256, size) of files that hold the same data in other bytes, such as another compression; they are
            taken where they lie already.
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
                f"{self.path}: a file needs a sha256, or an md5 where it is not from an sdist; only one placed by hand "
                "may have neither"
            )
        least = _WHOLE if isinstance(self.origin, Sdist) else _LEAST
        if self.sha256 is not None and len(self.sha256) < least:
            raise ValueError(f"{self.path}: its sha256 has {len(self.sha256)} digits; {least} are needed")

    @property
    def checksum(self) -> str | None:
        """The strongest checksum known, as `sha256 HEX` or `md5 HEX`; None while there is none."""
        if self.sha256 is not None:
            return f"sha256 {self.sha256}"
        return None if self.md5 is None else f"md5 {self.md5}"


class Files(Protocol):
    """How a dataset reaches its files; given to `load` by the caller."""

    def path(self, file: File) -> Path:
        """The checked local copy of a file; raises `DataError` when it is missing or its bytes are wrong."""
        ...

    def derived(self, name: str, make: Callable[[], Mapping[str, Array]]) -> Mapping[str, Array]:
        """Arrays made once by `make` and kept in the cache under `name`, which must name all that they depend on."""
        ...

    def rows(self, name: str, rows: Rows) -> Array:
        """As `derived`, of one array (n, *shape) of bytes that several processes make; it is mapped into memory.

        Raises:
            DataError: a line for each kind of fault of the rows, with their number, or the cache cannot be written.
        """
        ...


@dataclass(frozen=True, eq=False)
class DomainData:
    """All examples of one domain.

    Attributes:
        x: n examples (see `Inputs`).
        y: (n,) int64 class indices, or float32 values for regression.
        test: (n,) bool marking the official test examples, or None when test examples are whatever training left.
        identity: names all that `x` depends on, where that is cheaper to say than to read it; see `Backbone.embedding`.
    """

    x: Inputs
    y: Array
    test: Array | None = field(default=None)
    identity: str | None = None


@dataclass(frozen=True)
class Identified:
    """What a dataset makes of a folder of the user's.

    Attributes:
        what: which copy of the dataset it is, in a line.
        counts: of each domain, the examples of each class, by its name.
        lines: what is missing, odd or known to be bad, a line each.
        params: the parameters that read the folder once it lies below a data folder, but for `train`.
        certain: whether the folder is of this dataset, and not only of its layout.
        readable: whether the dataset reads the folder as it is, with all of its domains.
    """

    what: str
    counts: Mapping[str, Mapping[str, int]]
    lines: tuple[str, ...]
    params: Mapping[str, Any]
    certain: bool = True
    readable: bool = True


def same_view(x: Examples, strength: Strength, key: Tensor) -> Examples:  # noqa: ARG001 - as it is called
    """The examples as they are."""
    return x


def _same(inputs: Inputs) -> Inputs:
    return inputs


_COUNTS: tuple[Any, ...] = ("Count", "int", Count, int)
_OPTIONAL_COUNTS: tuple[Any, ...] = ("Count | None", "int | None", Count | None, int | None)
"""What plugins say of sizes that were written when these were counts alone."""


@component
class Dataset(Component, ABC):
    """A set of domains that share a task.

    Parameters that every dataset has:
        train: examples drawn at random from each domain for training (labelled in sources, unlabelled in the target): a
            count, a fraction of the domain, "all", or a mapping of these by domain; see `Size`.
        test: most test examples drawn from what is left of the target; all of them when None.
        target_train: as `train`, of the target; `train` when None.
        protocol: "held_out" tests on target examples that are not trained on; "transductive" trains on all of the
            target's examples, unlabelled, and tests on the same ones.
        corrupt: {source: NAME, labels: shuffle} permutes the labels that are seen of that source.
    """

    kind: ClassVar[str] = "dataset"
    licence: ClassVar[str] = "unknown"
    source: ClassVar[str] = ""
    """Who published the data, in a line."""
    modality: ClassVar[str] = "other"
    """The kind of data, by which results are filtered: text, images, audio, synthetic, or another word."""

    train: Size = 1000
    test: TestSize = None
    target_train: Annotated[OptionalSize, Added()] = None
    protocol: Annotated[Literal["held_out", "transductive"], Added()] = "held_out"
    corrupt: Annotated[Corruption, Added()] = None

    def __init_subclass__(cls, **given: Any) -> None:
        """Lets a dataset that says `train: Count = 500` take sizes in every form."""
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
        """What is predicted."""

    @property
    @abstractmethod
    def input(self) -> InputSpec:
        """What a backbone gets, after `fit`."""

    @property
    def files(self) -> tuple[File, ...]:
        """The files it is read from; empty when it is made on the spot."""
        return ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the results must know, a line each, such as data that stand in for others."""
        return ()

    @property
    def sizes(self) -> Mapping[str, Extent]:
        """The examples of each domain, or (training, test) where it has official test examples; empty if not known.

        With it, `msda-bench validate` finds a domain that is too small without loading any.
        """
        return {}

    def extents(self, files: Files) -> Mapping[str, Extent]:
        """As `sizes`, from files that are here, such as a list of a folder, without reading examples; `sizes` itself.

        With it, `validate` and `run` find domains that are too small in data whose sizes are not known beforehand. None
        where a file is missing or its bytes are wrong, and a domain at fault is left out: `prepare` reports these.

        Raises:
            DataError: a line for each reason why the files are of no use at all to the dataset as its parameters say.
        """
        return self.sizes

    @abstractmethod
    def load(self, domain: str, files: Files) -> DomainData:
        """All examples of a domain, always the same ones in the same order.

        Raises:
            DataError: a file is missing or is not what its format promises.
        """

    def prepare(self, files: Files) -> None:
        """Makes what is slow to make and is kept in the cache, before any run begins; nothing unless overridden.

        Raises:
            DataError: as `load`.
        """

    def prepare_domains(self, files: Files, domains: Sequence[str]) -> None:
        """As `prepare`, of the domains that runs need alone; all of them unless overridden.

        Raises:
            DataError: as `load`.
        """
        self.prepare(files)

    def identify(self, path: Path, sha256: str) -> Identified | None:
        """What a folder or file is as a copy of this dataset; None if it is none, which is all that the default says.

        Args:
            path: any folder or file of the user's.
            sha256: its checksum (see `File`).
        """
        return None

    def relatedness(self, target: str) -> Mapping[str, float]:
        """What each source is worth to a target, in percent, where that is known; nothing unless overridden.

        For classification the accuracy on the target of the best classifier for the source. `msda-bench sources` shows
        it beside the weights; no method sees it.
        """
        return {}

    def fit(self, train: Sequence[Inputs]) -> Callable[[Inputs], Inputs]:
        """A feature map learned from the training inputs (sources, then target), never from labels or test examples.

        The default changes nothing. A vocabulary or a standardisation belongs here.
        """
        return _same

    def fit_domains(self, train: Mapping[str, Inputs]) -> Callable[[str, Inputs], Inputs]:
        """As `fit`, of training inputs by domain (the sources in order, then the target), for a map that knows domains.

        The default is `fit`, the same map for every domain. A standardisation of each domain belongs here: of the
        target it then looks at training inputs alone (see `msda_bench.functional.standardiser`).

        Returns:
            What maps a domain's name and its examples, of training or test, to what a backbone gets.
        """
        features = self.fit(list(train.values()))
        return lambda _, x: features(x)

    def view(self, x: Examples, strength: Strength, key: Tensor) -> Examples:
        """The examples in another view, for methods that ask a network for the same answer on both; x by default.

        Args:
            x: n training examples after `fit`: a float32 tensor (n, ...), or `SparseRows`.
            strength: "weak" changes little of what matters, "strong" much.
            key: (2,) int32: all draws come from it (`msda_bench.functional`), so that runs can be stacked. Pure: no
                branch on a tensor's value, nothing changed in place.

        Returns:
            As many examples of the same shape; of a dense x the same as of a sparse one.
        """
        return same_view(x, strength, key)

    @property
    def augmentation(self) -> tuple[str, ...]:
        """The parameters by which `augment` changes images, as far as they are in use; none unless overridden.

        A suite that combines them with frozen features, which are of images as they are loaded, is refused.
        """
        return ()

    def augment(self, x: Tensor, key: Tensor | None) -> Tensor:
        """A batch of images as the network gets them; x itself by default.

        Args:
            x: (n, *kept) float32, bytes divided by 255.
            key: (2,) int32 in training: all draws come from it (`msda_bench.functional`), one for each image, so that
                runs can be stacked. Pure: no branch on a tensor's value, nothing changed in place. None in tests and
                for validators, where nothing is drawn.

        Returns:
            (n, *input.shape) float32.
        """
        return x

    def fingerprint(self) -> str:
        """sha256 that changes with the data: by default of the files' sha256 and the parameters."""
        identity = [[file.path, file.sha256 or file.checksum] for file in self.files]
        text = json.dumps([self.name, self.version, self.identity(), identity], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()
