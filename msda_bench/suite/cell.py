"""A cell: one training run, fully resolved, and its key."""

from __future__ import annotations

import hashlib
import json
import math
import re
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, NoReturn

ENGINE_VERSION = 1
"""Raised whenever the training core changes the numbers of an unchanged cell."""
_HUGE = tuple(re.compile(letter + rb"\+?[0-9]{3,}[],}\s]") for letter in (b"e", b"E"))
"""The end of a number that may be infinite; hashes, full of such digits, end in quotes.

Two patterns because the search for one letter is ten times as fast as that for either.
"""
_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_LONG = re.compile(rb"[:,\[\s-][0-9]{19}")
"""The start of a whole number of so many digits; a hash may hold as many elsewhere."""
_LARGEST = 2**63


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
        epochs: number of epochs; None for as many as hold `steps` steps in all.
        batch: examples of each source, and of the target, in a step, drawn at random with replacement; "all" for every
            example in each step, smaller groups as often as the largest has room for.
        optimizer: name: adadelta, adam, adamw or sgd.
        optimizer_params: its parameters, defaults included.
        steps: steps in an epoch, or without `epochs` in all; None for the rule of `epoch`.
        precision: of matrix products: float32, tf32 or bf16.
        epoch: how many steps an epoch has, and how many examples a step: equal, for every method the same; or scheme,
            as each scheme says.
        schedule: name of the rule by which the learning rate falls: none, step, cosine or polynomial.
        schedule_params: its parameters, defaults included.
        warmup: steps, or below 1 the share of all steps, over which the learning rate rises to its full value.
        clip: the largest norm of a step's gradient, over all that the phase trains; longer ones are scaled down.
        lr_factors: by part (features, predictor, critic) what its learning rate is multiplied by; 1 where not named.
        average: {over: last_epoch} or {ema: decay}: what the tested weights are the average of; None for the last step.
    """

    epochs: int | None
    batch: int | Literal["all"]
    optimizer: str
    optimizer_params: dict[str, float]
    steps: int | None = None
    precision: str = "float32"
    epoch: str = "scheme"
    schedule: str = "none"
    schedule_params: dict[str, Any] = field(default_factory=dict)
    warmup: float = 0
    clip: float | None = None
    lr_factors: dict[str, float] = field(default_factory=dict)
    average: dict[str, Any] | None = None


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

    @property
    def refs(self) -> tuple[Ref, ...]:
        """Its components."""
        given = (self.dataset, self.backbone, self.scheme, self.discrepancy, self.aggregator, *self.validators)
        return tuple(ref for ref in given if ref is not None)

    def to_json(self) -> dict[str, Any]:
        """All that changes the cell's numbers, as plain JSON values."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self), allow_nan=False))
        # What came later is left out at its default, so that the keys of stored results stay.
        for name in _later_defaults(self.training):
            del plain["training"][name]
        for name in ("split_sources", "labelled_target"):
            if not plain[name]:
                del plain[name]
        return {"engine": ENGINE_VERSION, **plain}

    @property
    def key(self) -> str:
        """sha256 of the canonical JSON, 64 hexadecimal digits."""
        return hashlib.sha256(canonical_json(self.to_json()).encode()).hexdigest()


def _later_defaults(training: Training) -> list[str]:
    """The fields that came after the first stored results, and are at their default."""
    names = [each.name for each in fields(Training)]
    usual = Training(0, 1, "", {})
    return [name for name in names[names.index("precision") :] if getattr(training, name) == getattr(usual, name)]


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no spaces; refuses NaN and infinities."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False)


def refuse_overflow(data: bytes) -> None:
    """Refuses JSON with NaN, an infinity or a whole number beyond 64 bits, which pydantic lets pass where any may be.

    Raises:
        ValueError: there is one, or it is no JSON.
        RecursionError: it is nested too deeply.
    """
    if b"NaN" in data or b"Infinity" in data or _may_be_huge(data) or _may_be_infinite(data):
        # Text may look the same.
        json.loads(data, parse_constant=_refuse, parse_float=_finite, parse_int=_bounded)


def _may_be_huge(data: bytes) -> bool:
    # Looking for a run of zeros first is many times as fast.
    return b"0" * 19 in data.translate(_DIGITS) and _LONG.search(data) is not None


def _may_be_infinite(data: bytes) -> bool:
    return any(huge.search(data) for huge in _HUGE)


def _refuse(what: str) -> NoReturn:
    raise ValueError(f"{what} is no number that can be used")


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse(text)


def _bounded(text: str) -> int:
    number = int(text)
    return number if abs(number) < _LARGEST else _refuse(f"a whole number of {len(text)} digits")
