"""One training run, fully resolved, and its key."""

from __future__ import annotations

import functools
import hashlib
import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, NoReturn

from msda_bench.suite.protocol import Splitting, TrainingConfig

ENGINE_VERSION = 1
"""Raised whenever the training core changes the numbers of an unchanged run."""
_HUGE = tuple(re.compile(letter + rb"\+?[0-9]{3,}[],}\s]") for letter in (b"e", b"E"))
"""The end of a number that may be infinite; hashes, full of such digits, end in quotes.

Two patterns, because the search for one letter is ten times as fast as that for either.
"""
_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_LONG = re.compile(rb"[:,\[\s-][0-9]{19}")
"""The start of a whole number of so many digits; a hash may hold as many elsewhere."""
_LARGEST = 2**63


@dataclass(frozen=True)
class ComponentSpec:
    """A component by name, with everything that changes its numbers.

    `params` are plain JSON values, defaults included; `AddedLater` ones only if they differ from the default.
    `file_paths` are paths on this machine, which change no number and are in no key. `held` is an object of this Python
    session, which `params` describe.
    """

    kind: str
    name: str
    version: int
    distribution: str
    params: dict[str, Any]
    file_paths: dict[str, str] = field(default_factory=dict, compare=False)
    held: Any = field(default=None, compare=False, repr=False)

    @property
    def given(self) -> dict[str, Any]:
        """The parameters that make the component on this machine."""
        return self.params | self.file_paths

    def identity(self) -> dict[str, Any]:
        """Everything except the paths and the held object."""
        return {name: value for name, value in vars(self).items() if name not in {"file_paths", "held"}}


@dataclass(frozen=True)
class RunSpec:
    """One training run, fully resolved.

    `fingerprint` is the dataset's, so that other data make another run. Discrepancy and aggregator are None if the
    scheme takes none. The first `labelled_target` training examples of the target are one more source. `metrics` are
    the ones that need outputs, or None. `prior_correction` is how predictions are corrected for the target's shares of
    classes. Labels of a regression may be standardised by the sources' training rows, and inputs by each domain's own
    (`standardise` is "domain"). The files to `keep` with the record change no number, and so no key.
    """

    dataset: ComponentSpec
    fingerprint: str
    target: str
    sources: tuple[str, ...]
    backbone: ComponentSpec
    scheme: ComponentSpec
    discrepancy: ComponentSpec | None
    aggregator: ComponentSpec | None
    mu: float
    training: TrainingConfig
    validators: tuple[ComponentSpec, ...]
    seed: int
    split_sources: Splitting | None = None
    labelled_target: int = 0
    metrics: tuple[ComponentSpec, ...] | None = None
    prior_correction: str | None = None
    standardise_labels: bool = False
    standardise: str | None = None
    keep: tuple[str, ...] = field(default=(), compare=False)

    @property
    def components(self) -> tuple[ComponentSpec, ...]:
        """All components of the run."""
        parts = (self.dataset, self.backbone, self.scheme, self.discrepancy, self.aggregator)
        given = (*parts, *self.validators, *(self.metrics or ()))
        return tuple(part for part in given if part is not None)

    def to_json(self) -> dict[str, Any]:
        """Everything that changes the run's numbers, as plain JSON values.

        Fields with a default were added later; they are omitted at their default, so that keys of stored results do not
        change.
        """
        values = {}
        for column in fields(self):
            value = getattr(self, column.name)
            if column.compare and value != column.default:
                values[column.name] = value
        plain: dict[str, Any] = json.loads(json.dumps(values, default=lambda part: part.identity(), allow_nan=False))
        return {"engine": ENGINE_VERSION, **plain}

    @property
    def key(self) -> str:
        """sha256 of the canonical JSON, 64 hexadecimal digits."""
        return keys_of(self.to_json())({})


def keys_of(values: dict[str, Any]) -> Callable[[dict[str, Any]], str]:
    """A function from changed fields of a run's JSON, all of them hashable, to the key of the changed run.

    JSON of everything else is made once, and that of a changed value once for all runs that share the value.
    """
    shared = {name: _member(name, value) for name, value in values.items()}
    names = sorted(shared)
    member = functools.cache(_member)

    def key(changed: dict[str, Any]) -> str:
        members = shared | {name: member(name, value) for name, value in changed.items()}
        return hashlib.sha256(f"{{{','.join(members[name] for name in names)}}}".encode()).hexdigest()

    return key


def _member(name: str, value: Any) -> str:
    return f"{canonical_json(name)}:{canonical_json(value)}"


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no spaces; refuses NaN and infinities."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False)


def refuse_overflow(data: bytes) -> None:
    """Refuses JSON with NaN, an infinity or a whole number beyond 64 bits, which pydantic accepts in untyped fields.

    Raises a ValueError, also if it is not JSON, or a RecursionError if it is nested too deeply.
    """
    # Searching for a run of zeros first is many times as fast.
    may_be_huge = b"0" * 19 in data.translate(_DIGITS) and _LONG.search(data) is not None
    if b"NaN" in data or b"Infinity" in data or may_be_huge or any(end.search(data) for end in _HUGE):
        # A string may contain such text.
        json.loads(data, parse_constant=_refuse, parse_float=_finite, parse_int=_bounded)


def _refuse(what: str) -> NoReturn:
    raise ValueError(f"{what} is not a usable number")


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse(text)


def _bounded(text: str) -> int:
    number = int(text)
    return number if abs(number) < _LARGEST else _refuse(f"a whole number of {len(text)} digits")
