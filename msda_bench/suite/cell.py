"""A cell: one training run, fully resolved, and its key."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any, Literal

ENGINE_VERSION = 1
"""Raised whenever the training core changes the numbers of an unchanged cell."""


@dataclass(frozen=True)
class Ref:
    """A component by name, with all that changes its numbers.

    Attributes:
        kind: dataset, backbone, discrepancy, aggregator, scheme or validator.
        name: its name.
        version: the component's own version.
        distribution: the distribution that brought it.
        params: every parameter, defaults included, as plain JSON values; of `Added` ones those that differ from them.
    """

    kind: str
    name: str
    version: int
    distribution: str
    params: dict[str, Any]


@dataclass(frozen=True)
class Training:
    """The protocol of one run.

    Attributes:
        epochs: number of epochs.
        batch: examples of each group, and of the target, in a step, drawn at random with replacement; "all" for every
            example in each step, smaller groups as often as the largest has room for.
        optimizer: name: adadelta, adam or sgd.
        optimizer_params: its parameters, defaults included.
        steps: steps in an epoch; None for the scheme's own rule.
        precision: of matrix products: float32, tf32 or bf16.
    """

    epochs: int
    batch: int | Literal["all"]
    optimizer: str
    optimizer_params: dict[str, float]
    steps: int | None = None
    precision: str = "float32"


@dataclass(frozen=True)
class Splitting:
    """How each source is split into finer domains (Wen et al. 2020, section 3.1, remark 4).

    Attributes:
        clusters: finer domains of each source.
        by: kmeans, on the training inputs; or chance, into equal parts.
    """

    clusters: int
    by: str = "kmeans"


@dataclass(frozen=True)
class Cell:
    """One training run, fully resolved.

    Attributes:
        dataset: the dataset.
        fingerprint: the dataset's, so that other data make another cell.
        target: the target domain.
        sources: the source domains, in order.
        backbone: the network.
        scheme: how it trains.
        discrepancy: None where the scheme takes none.
        aggregator: None where the scheme takes none.
        mu: weight of the discrepancy.
        training: the protocol.
        validators: scores to take after the last epoch.
        seed: draws the split, initial weights, batches and dropout.
        split_sources: how the sources are split; None where they stay whole.
        labelled_target: training examples of the target that are a source, with their labels.
    """

    dataset: Ref
    fingerprint: str
    target: str
    sources: tuple[str, ...]
    backbone: Ref
    scheme: Ref
    discrepancy: Ref | None
    aggregator: Ref | None
    mu: float
    training: Training
    validators: tuple[Ref, ...]
    seed: int
    split_sources: Splitting | None = None
    labelled_target: int = 0

    def to_json(self) -> dict[str, Any]:
        """All that changes the cell's numbers, as plain JSON values."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self), allow_nan=False))
        # What came later is left out at its default, so that the keys of stored results stay.
        if self.training.precision == Training.precision:
            del plain["training"]["precision"]
        for name in ("split_sources", "labelled_target"):
            if not plain[name]:
                del plain[name]
        return {"engine": ENGINE_VERSION, **plain}

    @property
    def key(self) -> str:
        """sha256 of the canonical JSON, 64 hexadecimal digits."""
        return hashlib.sha256(canonical_json(self.to_json()).encode()).hexdigest()


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no spaces; refuses NaN and infinities."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
