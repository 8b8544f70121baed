"""A record: the outcome of one run, immutable.

The types restrict the contents, since a result folder may come from anyone and a sha256 does not prove that a record
makes sense.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Meta, Struct

from msda_bench.component.task import TASK_KINDS

Count: TypeAlias = Annotated[int, Meta(ge=-(2**53), le=2**53)]
"""Whole numbers up to this one are exact as floats."""
Number: TypeAlias = Count | float
"""A number: whole numbers are read as such and written unchanged; JSON has no NaN and no infinity."""
Numbers: TypeAlias = Annotated[dict[str, Number], Meta(max_length=1000)]
Class: TypeAlias = Annotated[int, Meta(ge=0, lt=1_000_000)]
Pairs: TypeAlias = Annotated[
    tuple[tuple[Class, Class, Annotated[int, Meta(ge=1, le=2**53)]], ...], Meta(max_length=1_000_000)
]
"""For each true and predicted class that occur together, the number of examples."""
Text: TypeAlias = Annotated[str, Meta(max_length=10_000)]
Digest: TypeAlias = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
Saved: TypeAlias = dict[Annotated[str, Meta(pattern="^(predictions|target_predictions|weights)$")], Digest]
Status = Literal["ok", "diverged", "failed", "timeout", "oom", "skipped"]
RESULTS = frozenset({"ok", "diverged"})
"""Statuses that would repeat if the run were trained again; the others are failures."""
_ROUNDING, _TINY = 1e-6, 1e-290
"""How far sums may be apart for rounding, relatively, and where they are too small for that."""
LATER = frozenset({"confusion", "sum_absolute_error", "sum_labels", "sum_squared_labels", "metrics", "saved", "arrays"})
"""Fields added after the first records: omitted from a file when empty, so that older files do not change."""


@dataclass(frozen=True)
class Outcome:
    """The target's test result over n_test examples: n_correct for classification, sum_squared_error for regression.

    For a target without labels n_test is 0 and everything else None, since nothing can be counted.

    The other fields are None in records from before they existed: `confusion` for classification, sorted triples (true
    class, predicted class, examples); for regression the sums of absolute errors, of labels and of their squares.
    """

    n_test: Count
    n_correct: Count | None = None
    sum_squared_error: float | None = None
    confusion: Pairs | None = None
    sum_absolute_error: float | None = None
    sum_labels: float | None = None
    sum_squared_labels: float | None = None

    @property
    def is_possible(self) -> bool:
        """Whether the counts are possible: none, at most as many correct ones as examples, or errors that add up."""
        if self.n_test == 0:
            return self == Outcome(0)
        if self.n_test < 0 or (self.n_correct is None) == (self.sum_squared_error is None):
            return False
        later = (self.sum_absolute_error, self.sum_labels, self.sum_squared_labels)
        known = [value for value in later if value is not None]
        if self.n_correct is not None:
            return 0 <= self.n_correct <= self.n_test and self._counts_add_up and not known
        if self.confusion is not None or len(known) not in {0, len(later)}:
            return False
        squares = (self.sum_squared_error, self.sum_absolute_error, self.sum_squared_labels)
        is_negative = any(value is not None and value < 0 for value in squares)
        return not is_negative and self._sums_add_up

    def suits(self, task: str) -> bool:
        """Whether it is the outcome of a run with such a task."""
        if self.n_test == 0:
            return True
        return task in TASK_KINDS and (self.n_correct is not None) == TASK_KINDS[task].has_classes

    @property
    def _counts_add_up(self) -> bool:
        if self.confusion is None:
            return True
        places = {(true, predicted) for true, predicted, _ in self.confusion}
        right = sum(count for true, predicted, count in self.confusion if true == predicted)
        total = sum(count for _, _, count in self.confusion)
        return (total, right) == (self.n_test, self.n_correct) and len(places) == len(self.confusion)

    @property
    def _sums_add_up(self) -> bool:
        """Whether these sums of n numbers can be those of the same numbers as the sums of their squares."""
        errors, labels = self.sum_absolute_error, self.sum_labels
        if errors is None or labels is None or self.sum_squared_error is None or self.sum_squared_labels is None:
            return True
        pairs = [
            (errors * errors, self.n_test * self.sum_squared_error),
            (self.sum_squared_error, errors * errors),
            (labels * labels, self.n_test * self.sum_squared_labels),
        ]
        return all(less <= more * (1 + _ROUNDING) + _TINY for less, more in pairs)


class Counts(Struct, frozen=True, gc=False):
    """The fields of an outcome that tables need."""

    n_test: Count | None = None
    n_correct: Count | None = None
    sum_squared_error: float | None = None


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


@dataclass(frozen=True)
class Record:
    """The outcome of one cell.

    Attributes:
        key: the cell's key.
        cell: the cell as plain JSON (`RunSpec.to_json`).
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

    key: Digest
    cell: dict[str, Any]
    status: Status
    outcome: Outcome | None = None
    curves: Curves | None = None
    bound: Numbers = field(default_factory=dict)
    validation: Numbers = field(default_factory=dict)
    target_labels: bool = False
    message: Text | None = None
    timing: Numbers = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)
    metrics: Numbers = field(default_factory=dict)
    saved: Saved = field(default_factory=dict)
    arrays: Annotated[dict[str, bytes], Meta(max_length=0)] = field(default_factory=dict, compare=False, repr=False)


def same_result(first: Record, second: Record) -> bool:
    """Whether two records hold the same result: everything except timing, provenance and stored arrays.

    Counts that an older record does not have make no difference.
    """
    apart: dict[str, Any] = {"timing": {}, "provenance": {}, "saved": {}, "outcome": None}
    if replace(first, **apart) != replace(second, **apart):
        return False
    one, other = first.outcome, second.outcome
    if one is None or other is None:
        return one is other
    for name, value in vars(one).items():
        same = getattr(other, name)
        lacking = name in LATER and None in (value, same)
        if value != same and not lacking:
            return False
    return True
