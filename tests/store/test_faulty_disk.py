"""If a system call fails, stored records stay intact and one line reports the fault."""

from __future__ import annotations

import errno
import itertools
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from msda_bench import atomic
from msda_bench.errors import StoreError
from msda_bench.results.files import write_results
from msda_bench.results.frame import runs_frame
from msda_bench.results.leaderboard import analyse
from msda_bench.store import Outcome, Store
from msda_bench.store.merge import merge
from msda_bench.store.verify import verify
from msda_bench.suite.plan import Experiment, Method, Plan, PlannedCell
from tests.store.conftest import make_record
from tests.store.faulty import Faulty, faults

STORED, NEW, DAMAGED = make_record(), make_record(seed=1), make_record(seed=2)
TABLE = Experiment("t", "toy", "classification", ("bücher",), (Method("a", False, "", ()),), (0,))
PLAN = Plan("suite", (TABLE,), (PlannedCell("t", "a", "bücher", 0, STORED.key),))
Act = Callable[[Store], object]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)  # it shows after a power failure alone, and is slow


def publish_result(store: Store) -> None:
    store.publish(NEW)


def publish_failure(store: Store) -> None:
    store.publish(replace(NEW, status="failed", outcome=None))


def publish_conflict(store: Store) -> None:
    store.publish(replace(STORED, outcome=Outcome(100, 1)))


def replace_damaged(store: Store) -> None:
    store.publish(DAMAGED)


def quarantine(store: Store) -> None:
    store.read(DAMAGED.key)


def write_plan(store: Store) -> None:
    store.write_plan(replace(PLAN, suite="changed"))


def write_all_tables(store: Store) -> None:
    write_results(store.folder, analyse(runs_frame(PLAN, {STORED.key: STORED})))


def merge_another(store: Store) -> None:
    merge(store, Store(store.folder.with_name("other")))


def start_anew(store: Store) -> None:
    Store.create(store.folder.with_name("anew")).publish(NEW)


ACTS = (
    publish_result,
    publish_failure,
    publish_conflict,
    replace_damaged,
    quarantine,
    write_plan,
    write_all_tables,
    merge_another,
    start_anew,
)


def tried(folder: Path, act: Act, code: int) -> Iterator[Faulty]:
    """Repeats an action with another call refused each time, until no call is left."""
    for at in itertools.count():
        store = prepared(folder / str(at))
        with faults(code, at) as faulty:
            try:
                act(store)
            except StoreError as error:
                (line,) = error.lines
                assert line.startswith(str(folder))
                assert line.endswith(f": {os.strerror(code)}")
        check_intact(store, faulty)
        act(store)
        assert Store(store.folder).read(STORED.key) == STORED
        assert act is not publish_result or Store(store.folder).read(NEW.key) == NEW
        assert verify(Store(store.folder)).bad in ([], [f"{store.path(DAMAGED.key)}: is truncated or not a record"])
        yield faulty
        if faulty.refused is None:
            break


def prepared(parent: Path) -> Store:
    store, other = Store.create(parent / "suite"), Store.create(parent / "other")
    for each in (store, other):
        each.publish(STORED)
        each.write_plan(PLAN)
    other.publish(NEW)
    store.publish(DAMAGED)
    store.path(DAMAGED.key).write_bytes(b"damaged")
    write_results(store.folder, analyse(runs_frame(PLAN, {})))
    return store


def check_intact(store: Store, faulty: Faulty) -> None:
    fresh = Store(store.folder, repair=False)
    assert fresh.read(STORED.key) == STORED
    assert fresh.read(NEW.key) in (None, NEW)
    assert fresh.read_plan().suite in {"suite", "changed"}
    assert (store.folder / "leaderboard.csv").read_bytes().endswith(b"\n")
    kept = [path for path in store.folder.rglob(f"*{DAMAGED.key}*") if path.read_bytes() == b"damaged"]
    assert kept
    if faulty.refused != "unlink":  # what could not be removed stays, and `store verify` removes it later
        assert not [path for path in store.folder.rglob(".*") if atomic.is_temporary(path.name)]


@pytest.mark.slow
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("act", ACTS, ids=lambda act: act.__name__)
def test_each_file_system_call_may_fail(tmp_path: Path, act: Act, code: int) -> None:
    runs = list(tried(tmp_path, act, code))
    assert len(runs) == len(runs[-1].calls) + 1
    assert {"fsync"} <= set(runs[-1].calls)


@pytest.mark.slow
@pytest.mark.parametrize("act", ACTS, ids=lambda act: act.__name__)
def test_each_file_system_call_may_fail_without_hard_links(
    tmp_path: Path, act: Act, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", refuse)
    assert len(list(tried(tmp_path, act, errno.ENOSPC))) > 1


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES])
def test_a_read_only_folder_can_be_read(tmp_path: Path, code: int) -> None:
    store = prepared(tmp_path)
    for at in range(3):
        with faults(code, at):
            assert store.read(STORED.key) == STORED
            assert store.read_plan() == PLAN
    with faults(code, 0), pytest.raises(StoreError, match=os.strerror(code)):
        write_all_tables(store)
