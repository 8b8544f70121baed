from __future__ import annotations

import pytest

from msda_bench.store import Outcome, Record, Store
from msda_bench.store.columns import read_columns
from msda_bench.store.names import Faults

KEYS = tuple(f"{digit}" * 64 for digit in "abc")


def ok(key: str, correct: int = 5) -> Record:
    return Record(key, {}, "ok", Outcome(10, n_correct=correct))


@pytest.fixture
def folder(tmp_path):
    store = Store.create(tmp_path / "results")
    for key in KEYS:
        store.publish(ok(key))
    return store.folder


def found(folder, keys=KEYS, *, repair: bool = True) -> Faults:
    return read_columns(Store(folder, repair=repair), keys).faults


def test_a_sound_folder_has_none(folder):
    assert found(folder) == Faults()


def test_another_result_is_a_conflict(folder):
    Store(folder).publish(ok(KEYS[1], correct=6))
    assert found(folder) == Faults(conflicting=frozenset({KEYS[1]}))
    assert found(folder, KEYS[:1]) == Faults()


@pytest.mark.parametrize("repair", [True, False])
def test_a_damaged_record_is_told_whether_or_not_it_is_set_aside_and_again_later(folder, repair):
    path = Store(folder).path(KEYS[2])
    path.write_bytes(b"{")
    for _ in range(2):
        assert found(folder, repair=repair) == Faults(damaged=frozenset({KEYS[2]}))
        assert path.exists() != repair


def test_a_failure_does_not_hide_that_a_result_was_damaged(folder):
    store = Store(folder)
    store.path(KEYS[0]).write_bytes(b"")
    store.publish(Record(KEYS[0], {}, "failed", message="no"))
    assert found(folder).damaged == {KEYS[0]}


def test_a_cell_that_ran_again_is_sound(folder):
    store = Store(folder)
    store.path(KEYS[0]).write_bytes(b"")
    assert found(folder).damaged == {KEYS[0]}
    store.publish(ok(KEYS[0]))
    assert found(folder) == Faults()
