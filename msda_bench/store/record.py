"""A record: the outcome of one cell, immutable, one file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

SCHEMA = 1
"""Version of a record's layout."""

Number: TypeAlias = int | float
"""Both by name, so that a whole number is read as one and written as it was."""
Status = Literal["ok", "diverged", "failed", "timeout", "oom", "skipped"]


@dataclass(frozen=True)
class Outcome:
    """The target's test result.

    Attributes:
        n_test: test examples.
        n_correct: correctly classified ones; None for regression.
        sum_squared_error: for regression; None for classification.
    """

    n_test: int
    n_correct: int | None = None
    sum_squared_error: float | None = None

    @property
    def is_possible(self) -> bool:
        """Whether there are examples, and of them as many correct, or such an error, as can be."""
        if self.n_test <= 0 or (self.n_correct is None) == (self.sum_squared_error is None):
            return False
        if self.n_correct is not None:
            return 0 <= self.n_correct <= self.n_test
        return self.sum_squared_error is not None and self.sum_squared_error >= 0


@dataclass(frozen=True)
class Curves:
    """What happened over the epochs; each a list of epochs, each a list of one number a group.

    Attributes:
        groups: the labelled groups in order, each a list of the domains, or parts of domains, drawn as one.
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
        cell: the cell as plain JSON (`Cell.to_json`).
        status: ok, diverged (a loss was not finite), failed, timeout, oom or skipped.
        outcome: None unless ok.
        curves: None where there are none.
        bound: measurable terms of the paper's equation 2: effective_sample_size m / ||alpha||^2 (where groups differ in
            size, 1 / sum_i alpha_i^2 / m_i), weights_norm.
        validation: score by validator.
        target_labels: whether training asked for the target's labels; for all of those of its training examples, or for
            as many as the cell's `labelled_target` says, where it has one.
        message: one line on what went wrong, or None.
        timing: seconds by part, and steps; not part of the result.
        provenance: versions of libraries and of plugins, device, stack size; not part of the result.
    """

    key: str
    cell: dict[str, Any]
    status: Status
    outcome: Outcome | None = None
    curves: Curves | None = None
    bound: dict[str, Number] = field(default_factory=dict)
    validation: dict[str, Number] = field(default_factory=dict)
    target_labels: bool = False
    message: str | None = None
    timing: dict[str, Number] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)

    @property
    def is_result(self) -> bool:
        """Whether running the cell again would give the same: ok and diverged are results, the rest are failures."""
        return self.status in {"ok", "diverged"}
