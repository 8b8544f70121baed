"""The score of a record: its test result as an exact number."""

from __future__ import annotations

from fractions import Fraction

from msda_bench.errors import StoreError
from msda_bench.store.record import Record


def score(record: Record, task: str) -> Fraction:
    """Accuracy in percent, or mean squared error, of a record that is ok.

    Args:
        record: the record.
        task: classification or regression.

    Raises:
        StoreError: it has no possible outcome of that task.
    """
    outcome = record.outcome
    if outcome is not None and outcome.is_possible:
        if task == "classification" and outcome.n_correct is not None:
            return Fraction(100 * outcome.n_correct, outcome.n_test)
        if task == "regression" and outcome.sum_squared_error is not None:
            return Fraction(outcome.sum_squared_error) / outcome.n_test
    raise StoreError(
        f"record {record.key}: ok, but without a possible outcome of a {task} run; move its file away, and the same "
        "`msda-bench run` makes it anew"
    )


def sign(task: str) -> int:
    """1 where a higher score is better, -1 where a lower one is."""
    return 1 if task == "classification" else -1
