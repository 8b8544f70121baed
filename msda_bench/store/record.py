"""A record: the outcome of one cell, immutable, one file.

Its types restrict the contents, since a result folder may come from anyone and a sha256 does not prove that it makes
sense.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, Field, GetPydanticSchema
from pydantic_core import core_schema

from msda_bench.errors import printable

SCHEMA = 1
"""Version of a record's layout; raised when a field changes its meaning or name, not when fields are added."""
Count: TypeAlias = Annotated[int, Field(ge=-(2**53), le=2**53)]
"""Whole numbers up to this one are exact as floats."""
Number: TypeAlias = Count | Annotated[float, Field(allow_inf_nan=False)]
"""A number, in strict mode: whole numbers are read as such and written unchanged."""
Numbers: TypeAlias = Annotated[dict[str, Number], Field(max_length=1000)]
Finite: TypeAlias = Annotated[float, Field(allow_inf_nan=False)]
Class: TypeAlias = Annotated[int, Field(ge=0, lt=1_000_000)]
Pairs: TypeAlias = Annotated[
    tuple[tuple[Class, Class, Annotated[int, Field(ge=1, le=2**53)]], ...], Field(max_length=1_000_000)
]
"""For each true and predicted class that occur together, the number of examples."""
Text: TypeAlias = Annotated[str, Field(max_length=10_000)]
Saved: TypeAlias = dict[
    Annotated[str, Field(pattern="^(predictions|target_predictions|weights)$")],
    Annotated[str, Field(pattern="^[0-9a-f]{64}$")],
]
Status = Literal["ok", "diverged", "failed", "timeout", "oom", "skipped"]
RESULTS = frozenset({"ok", "diverged"})
"""Statuses that running the cell again would give again; the rest are failures."""


def _fields(*, closed: bool = False, **fields: Any) -> GetPydanticSchema:
    """Restricts these fields of a mapping, if present; others may hold anything, unless it is closed."""

    def schema(_: Any, handler: Any) -> core_schema.CoreSchema:
        known = {
            name: core_schema.typed_dict_field(handler.generate_schema(kind), required=closed)
            for name, kind in fields.items()
        }
        return core_schema.typed_dict_schema(known, extra_behavior="forbid" if closed else "allow")

    return GetPydanticSchema(schema)


_Ref = Annotated[dict[str, Any], _fields(name=Text, version=Count, params=dict[str, Any])]
_Clusters = Annotated[int, Field(gt=0, le=1000)]
_Splitting = Annotated[dict[str, Any], _fields(closed=True, clusters=_Clusters, by=Text)]
CellJson: TypeAlias = Annotated[
    dict[str, Any],
    _fields(
        **dict.fromkeys(("dataset", "backbone", "scheme"), _Ref),
        **dict.fromkeys(("discrepancy", "aggregator"), _Ref | None),
        **dict.fromkeys(("target", "fingerprint"), Text),
        **dict.fromkeys(("seed", "labelled_target"), Count),
        mu=Number,
        sources=list[Text],
        training=dict[str, Any],
        **dict.fromkeys(("validators", "metrics"), list[_Ref]),
        split_sources=_Splitting | None,
    ),
]
_Stage = Annotated[dict[str, Any], _fields(closed=True, name=Text, share=Number, sees=list[Text])]
Provenance: TypeAlias = Annotated[
    dict[str, Any],
    _fields(
        **dict.fromkeys(("device", "device_name", "stack_note", "torch", "python", "numpy", "platform"), Text),
        numba=Text | None,
        stack=Count,
        distributions=dict[str, Text],
        stages=list[_Stage],
    ),
]


LATER = frozenset({"confusion", "sum_absolute_error", "sum_labels", "sum_squared_labels", "metrics", "saved", "arrays"})
"""Fields added after the first records: omitted from a file when empty, so that older files do not change."""


@dataclass(frozen=True)
class Outcome:
    """The target's test result over n_test examples: n_correct for classification, sum_squared_error for regression.

    A target without labels has n_test 0 and nothing else: what nobody can count.

    The other fields are None in records from before they existed: `confusion` for classification, sorted triples (true
    class, predicted class, examples); for regression the sums of absolute errors, of labels and of their squares.
    """

    n_test: Count
    n_correct: Count | None = None
    sum_squared_error: Finite | None = None
    confusion: Pairs | None = None
    sum_absolute_error: Finite | None = None
    sum_labels: Finite | None = None
    sum_squared_labels: Finite | None = None

    @property
    def is_possible(self) -> bool:
        """Whether the counts are possible: none, at most as many correct ones as examples, or possible errors."""
        sums = (self.sum_absolute_error, self.sum_labels, self.sum_squared_labels)
        if self.n_test == 0:
            return all(value is None for name, value in vars(self).items() if name != "n_test")
        if self.n_test < 0 or (self.n_correct is None) == (self.sum_squared_error is None):
            return False
        if self.n_correct is not None:
            return 0 <= self.n_correct <= self.n_test and self._counts_add_up and sums == (None,) * len(sums)
        squares = (self.sum_squared_error, self.sum_absolute_error, self.sum_squared_labels)
        whole = None not in sums or sums == (None,) * len(sums)
        return whole and self.confusion is None and all(value is None or value >= 0 for value in squares)

    @property
    def _counts_add_up(self) -> bool:
        if self.confusion is None:
            return True
        places = [(true, predicted) for true, predicted, _ in self.confusion]
        right = sum(count for true, predicted, count in self.confusion if true == predicted)
        total = sum(count for *_, count in self.confusion)
        return (total, right) == (self.n_test, self.n_correct) and len(set(places)) == len(places)

    def agrees(self, other: Outcome) -> bool:
        """Whether all fields that both have are equal; an older record has fewer."""
        pairs = {name: (value, getattr(other, name)) for name, value in vars(self).items()}
        return all(a == b or (name in LATER and None in (a, b)) for name, (a, b) in pairs.items())


@dataclass(frozen=True)
class Curves:
    """The course of training; each is a list of epochs, each a list of one number a group.

    Attributes:
        groups: the labelled groups in order, each a list of the domains, or parts of domains, that are sampled as one.
        risks: mean over the epoch's steps.
        gaps: mean over the epoch's steps.
        weights: exponential moving average with decay 0.9 over the steps, read at the epoch's end.
    """

    groups: list[list[str]]
    risks: list[list[float]]
    gaps: list[list[float]]
    weights: list[list[float]]


def _even(curves: Curves) -> Curves:
    epochs, width = len(curves.risks), len(curves.groups)
    for name in ("risks", "gaps", "weights"):
        rows = getattr(curves, name)
        if len(rows) != epochs or not {width}.issuperset(map(len, rows)):
            raise ValueError(f"{name} needs a number for each of {epochs} epochs and {width} groups")
    return curves


@dataclass(frozen=True)
class Record:
    """The outcome of one cell.

    Attributes:
        key: the cell's key.
        cell: the cell as plain JSON (`Cell.to_json`).
        status: ok, diverged (a loss was not finite), failed, timeout, oom or skipped.
        outcome: None unless ok.
        curves: None if there are none.
        bound: measurable terms of the paper's equation 2: effective_sample_size m / ||alpha||^2 (if groups differ in
            size, 1 / sum_i alpha_i^2 / m_i), weights_norm.
        validation: score by validator.
        metrics: by name the value of each metric that needs the outputs and that the cell requests.
        target_labels: whether training used the target's labels: those of all its training examples, or as many as the
            cell's `labelled_target`, if it has one.
        message: one line on the fault, or None.
        timing: seconds by part, and steps; not part of the result.
        provenance: versions of libraries and of plugins, device, stack size and, for a scheme of several stages, the
            data that each may see; not part of the result.
        saved: the sha256 of each file of arrays stored with the record, such as `predictions`; not part of the result.
        arrays: the bytes of these files, only in a record that is about to be stored.
    """

    key: str
    cell: CellJson
    status: Status
    outcome: Outcome | None = None
    curves: Annotated[Curves, AfterValidator(_even)] | None = None
    bound: Numbers = field(default_factory=dict)
    validation: Numbers = field(default_factory=dict)
    target_labels: bool = False
    message: Text | None = None
    timing: Numbers = field(default_factory=dict)
    provenance: Provenance = field(default_factory=dict)
    metrics: Numbers = field(default_factory=dict)
    saved: Saved = field(default_factory=dict)
    arrays: Annotated[dict[str, bytes], Field(max_length=0)] = field(default_factory=dict, compare=False, repr=False)

    @property
    def is_result(self) -> bool:
        """Whether running the cell again would give the same: ok and diverged are results, the rest are failures."""
        return self.status in RESULTS


_MACHINE = re.compile(r"(?<![a-z0-9_])(x86_64|amd64|arm64|aarch64|armv7l|i[3-6]86|ppc64le|riscv64|s390x)(?![a-z0-9_])")
_LONG = 60


def made_on(provenance: Mapping[Any, Any]) -> str | None:
    """Such as `macOS arm64 with torch 2.11.0`; None where a record says nothing of it.

    Args:
        provenance: of a record, or its row of a frame of runs, with None for what it does not say.
    """
    return _words(*map(provenance.get, ("platform", "torch", "device", "device_name")))


@functools.lru_cache(maxsize=1000)
def _words(platform: str | None, torch: str | None, device: str | None, device_name: str | None) -> str | None:
    if not (platform or torch):
        return None
    system = _system(platform) if platform else "an unnamed system"
    system += f" with torch {printable(torch, _LONG)}" if torch else ""
    return system + (f" and {printable(device_name or device, _LONG)}" if device not in {None, "cpu"} else "")


def _system(platform: str) -> str:
    """The system and the machine of what `platform.platform()` says, without the releases of kernels and libraries."""
    # The last one named is the machine: before it a kernel's release may name another.
    machines = _MACHINE.findall(platform.lower())
    return " ".join([printable(platform.partition("-")[0], _LONG), *machines[-1:]])
