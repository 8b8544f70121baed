"""The test counts in records, and older records without them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from msda_bench.store import Outcome, Store
from msda_bench.store.files import decode, encode, same_result
from tests.store.conftest import make_record

COUNTED = Outcome(100, 80, confusion=((0, 0, 50), (0, 1, 20), (1, 1, 30)))
SUMMED = Outcome(4, sum_squared_error=2.0, sum_absolute_error=1.5, sum_labels=0.0, sum_squared_labels=9.0)


@pytest.mark.parametrize("outcome", [COUNTED, SUMMED])
def test_counts_round_trip_and_agree_with_older_records(outcome: Outcome, store: Store) -> None:
    record = make_record(outcome=outcome, metrics={"auc": 0.5})
    again = decode(encode(record), record.key)
    assert again == record
    assert outcome.is_possible
    older = replace(record, outcome=Outcome(outcome.n_test, outcome.n_correct, outcome.sum_squared_error))
    assert b"confusion" not in encode(older)
    assert b"sum_labels" not in encode(older)
    assert same_result(older, record)
    assert not same_result(replace(record, outcome=replace(outcome, n_test=101)), record)
    store.publish(older)
    assert not store.publish(record)
    assert not store.conflicts


@pytest.mark.parametrize(
    "outcome",
    [
        replace(COUNTED, n_correct=79),
        replace(COUNTED, n_test=101),
        replace(COUNTED, confusion=((0, 0, 40), (0, 0, 40), (0, 1, 20))),
        replace(COUNTED, sum_labels=1.0),
        replace(SUMMED, confusion=((0, 0, 4),)),
        replace(SUMMED, sum_labels=None),
        replace(SUMMED, sum_absolute_error=-1.0),
    ],
)
def test_impossible_counts_give_no_outcome(outcome: Outcome) -> None:
    assert not outcome.is_possible
