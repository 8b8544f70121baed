"""What a dataset may do besides loading examples: a protocol each, which it follows by having the methods.

A class need not name the protocol. Where a dataset lacks one, the functions at the end give the usual answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, runtime_checkable

from msda_bench.component.dataset import Dataset, Inputs
from msda_bench.component.files import Files
from msda_bench.component.sizes import Extent

if TYPE_CHECKING:
    from torch import Tensor

    from msda_bench.component.step import Examples, Group

Strength: TypeAlias = Literal["weak", "strong"]
"""How much a view changes an example."""


@runtime_checkable
class Fits(Protocol):
    """Learns features from training examples, such as a vocabulary or a standardisation."""

    def fit(self, train: Mapping[str, Inputs]) -> Callable[[str, Inputs], Inputs]:
        """A feature map learned from training inputs, never from labels or test examples.

        `msda_bench.functional.fit_ngrams` and `standardiser` are such maps.

        Args:
            train: the training inputs by domain: the sources in order, then the target.

        Returns:
            The map from a domain's name and its examples, of training or test, to the backbone's input.
        """
        ...


@runtime_checkable
class KnowsSizes(Protocol):
    """Knows how many examples its domains have without loading them.

    With it, `msda-bench validate` finds a domain that is too small without loading any.
    """

    def sizes(self, files: Files | None = None) -> Mapping[str, Extent]:
        """The examples of each domain, or (training, test) if it has official test examples; empty if not known.

        Args:
            files: None asks for sizes that are known beforehand. Otherwise they may come from local files, such as a
                list of a folder, without domains at fault; `prepare` or `load` reports these and missing files.

        Raises:
            DataError: a line for each reason why the dataset cannot use the files with its parameters.
        """
        ...


@runtime_checkable
class ChoosesSources(Protocol):
    """Has domains that are no targets, or targets without some of the sources."""

    def sources(self) -> Mapping[str, Group]:
        """The source domains of each target."""
        ...


@runtime_checkable
class Prepares(Protocol):
    """Computes slow results before any run begins."""

    def prepare(self, files: Files, domains: Sequence[str]) -> None:
        """Keeps in the cache what these domains need.

        Raises:
            DataError: as `load`.
        """
        ...


@runtime_checkable
class HasViews(Protocol):
    """Shows examples in other views, for methods that want a network to give the same answer on both."""

    def view(self, x: Examples, strength: Strength, key: Tensor) -> Examples:
        """The examples in another view.

        Args:
            x: n training examples after `fit`: a float32 tensor (n, ...), or `SparseRows`.
            strength: "weak" changes little that matters, "strong" much.
            key: (2,) int32: the source of all draws (`msda_bench.functional`), so that runs can be stacked. Pure: no
                branch on a tensor's value, nothing changed in place.

        Returns:
            As many examples of the same shape; equal for a dense and a sparse x.
        """
        ...


@runtime_checkable
class Augments(Protocol):
    """Changes images at random in training, or their size."""

    def augment(self, x: Tensor, key: Tensor | None) -> Tensor:
        """A batch of images as the network gets them.

        Args:
            x: (n, *kept) float32, bytes divided by 255.
            key: (2,) int32 in training: the source of all draws (`msda_bench.functional`), separate for each image, so
                that runs can be stacked. Pure: no branch on a tensor's value, nothing changed in place. None in tests
                and for validators, where nothing is drawn.

        Returns:
            (n, *input.shape) float32.
        """
        ...


@runtime_checkable
class NamesAugmentation(Protocol):
    """Has parameters by which it augments images; where they are in use, a suite with frozen features is refused.

    Those are computed from the loaded images, once.
    """

    def augmentation(self) -> tuple[str, ...]:
        """The names of these parameters, if they are in use."""
        ...


@runtime_checkable
class KnowsRelatedness(Protocol):
    """Knows what its sources are worth, such as a generated dataset; no method sees it."""

    def relatedness(self, target: str) -> Mapping[str, float]:
        """The worth of each source for a target, in percent.

        For classification the accuracy on the target of the best classifier for the source. `msda-bench sources` shows
        it next to the weights.
        """
        ...


@dataclass(frozen=True)
class Identified:
    """What a dataset found in a folder of the user's.

    Attributes:
        what: the copy of the dataset that it is, in a line.
        counts: for each domain, the examples of each class, by its name.
        lines: anything missing, odd or known to be bad, a line each.
        params: the parameters that read the folder once it lies below a data folder; `train` may be left out.
        certain: whether the folder belongs to this dataset, rather than only having its layout.
        suite: what a first suite needs below its `dataset`, as YAML: targets, seeds, backbone, training, methods. Empty
            if the dataset does not read the folder unchanged, with all of its domains.
        doubts: why the owner may mean something else, and what to do then, a line each; with any, a suite is written
            only if the user asks for it anyway.
        read: how much was read of how much, and what was not, as in `read 20 of 24 files; not read: 4 .heic`.
    """

    what: str
    counts: Mapping[str, Mapping[str, int]]
    lines: tuple[str, ...]
    params: Mapping[str, Any]
    certain: bool = True
    suite: str = ""
    doubts: tuple[str, ...] = ()
    read: str = ""


@runtime_checkable
class Identifies(Protocol):
    """Recognises copies of its files, for `msda-bench data identify`."""

    def identify(self, path: Path, sha256: str) -> Identified | None:
        """Identifies a folder or file as a copy of this dataset; None if it is not.

        Args:
            path: any folder or file of the user's.
            sha256: its checksum (see `File`).
        """
        ...


@runtime_checkable
class IdentifiesColumns(Protocol):
    """Reads a file of the user's by its columns, for `msda-bench data identify FILE --domain D --label L`."""

    def identify_columns(self, path: Path, columns: Mapping[str, str]) -> Identified | None:
        """Looks through the file; None if it is none of the kind.

        Args:
            path: the file, absolute.
            columns: the names of the `domain`, of the `label` and, where the user gives them, of `text`, `group` and
                `predictions`; whether domains without any label are targets (`unlabelled`: "target", or "drop"); where
                given, the `task`, and the texts that stand for a missing value (`missing`, commas between them). A
                folder of files may come without a `domain`.

        Raises:
            DataError: the file cannot be used.
        """
        ...


@runtime_checkable
class Describes(Protocol):
    """Finds its domains, classes and columns in a file of the user's, and says what it made of them."""

    def describe(self) -> Sequence[str]:
        """A line for each thing that the user should check; `msda-bench validate` prints them."""
        ...


def fitted(data: Dataset, train: Mapping[str, Inputs]) -> Callable[[str, Inputs], Inputs]:
    """The feature map that a dataset learns (see `Fits`); one that changes nothing if it learns none."""
    return data.fit(train) if isinstance(data, Fits) else lambda _, inputs: inputs


def sizes_of(data: Dataset, files: Files | None = None) -> dict[str, Extent]:
    """The known sizes of a dataset's domains (see `KnowsSizes`).

    Raises:
        TypeError: the dataset gives something else than counts.
        DataError: as `KnowsSizes.sizes`.
    """
    sizes = dict(data.sizes(files)) if isinstance(data, KnowsSizes) else {}
    for domain, size in sizes.items():
        parts = size if isinstance(size, tuple) else (size,)
        if len(parts) not in {1, 2} or any(type(part) is not int for part in parts):
            raise TypeError(f"sizes gives {size!r} for {domain!r}; the contract asks for a count, or two")
    return sizes


def sources_of(data: Dataset) -> dict[str, Group]:
    """The sources of each possible target; all other domains unless the dataset chooses."""
    if isinstance(data, ChoosesSources):
        return {target: tuple(sources) for target, sources in data.sources().items()}
    return {target: tuple(domain for domain in data.domains if domain != target) for target in data.domains}


def description_of(data: Dataset) -> tuple[str, ...]:
    """What a dataset says of the user's file (see `Describes`)."""
    return tuple(data.describe()) if isinstance(data, Describes) else ()


def augmentation_of(data: Dataset) -> tuple[str, ...]:
    """The parameters in use by which a dataset augments images (see `NamesAugmentation`)."""
    return tuple(data.augmentation()) if isinstance(data, NamesAugmentation) else ()


def view_of(data: Dataset, *, frozen: bool) -> Callable[[Examples, Strength, Tensor], Examples]:
    """How a dataset's examples look in another view; frozen features have one alone."""
    return data.view if isinstance(data, HasViews) and not frozen else same_view


def same_view(x: Examples, strength: Strength, key: Tensor) -> Examples:  # noqa: ARG001 - the signature of `view`
    """The examples unchanged."""
    return x
