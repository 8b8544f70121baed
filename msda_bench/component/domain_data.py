"""What a dataset gives: the examples of a domain, their form for a backbone, and images that change in training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, runtime_checkable

from msda_bench.component.files import Array

if TYPE_CHECKING:
    import scipy.sparse
    from torch import Tensor

Inputs: TypeAlias = "Array | scipy.sparse.csr_matrix"
"""Examples of one domain: a float32 or uint8 array (n, ...), a CSR matrix (n, columns), or an object array of texts."""
Strength: TypeAlias = Literal["weak", "strong"]
"""How much a view changes an example."""


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
        mask: how many of the last channels of a signal (channels, time) say which numbers of as many channels before
            them are known, by 1, and which are missing, by 0; those are 0, too. 0 if none can be missing.
    """

    shape: tuple[int, ...]
    sparse: bool = False
    bytes: bool = False
    texts: bool = False
    beside: int = 0
    mask: int = 0


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
            1 for a predicted class, or numbers; NaN for rows without one. None if there are none. Only a `Predictor`
            with `uses_predictions` shows them.
        places: (n,) int64, the rows of the examples among all of the domain in the user's file, for
            `load_predictions`; None if all are here.
    """

    x: Inputs
    y: Array
    test: Array | None = None
    identity: str | None = None
    groups: Array | None = None
    texts: Array | None = None
    predictions: Array | None = None
    places: Array | None = None

    def __post_init__(self) -> None:
        """Makes NumPy's texts of any length (`StringDType`) objects, as all that reads texts takes them."""
        for name in ("x", "groups", "texts"):
            values = getattr(self, name)
            if getattr(values, "dtype", None) is not None and values.dtype.kind == "T":
                object.__setattr__(self, name, values.astype(object))


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
