"""If a system call fails, stored records stay intact and one line reports the fault."""

from __future__ import annotations

import errno
import functools
import itertools
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from msda_bench import atomic
from msda_bench.errors import StoreError
from msda_bench.results.files import write_results
from msda_bench.results.frame import runs_frame
from msda_bench.results.leaderboard import analyse
from msda_bench.store import Outcome, Store
from msda_bench.store.sweep import merge, verify
from msda_bench.suite.plan import Experiment, Method, Plan, PlannedCell
from tests.store.conftest import make_record
from tests.store.faulty import Faulty, faults

STORED, NEW, DAMAGED = make_record(), make_record(seed=1), make_record(seed=2)
TABLE = Experiment("t", "toy", "classification", ("bücher",), (Method("a", False, "", ()),), (0,))
PLAN = Plan("suite", (TABLE,), (PlannedCell("t", "a", "bücher", 0, STORED.key),))
TABLES = functools.cache(lambda ok: analyse(runs_frame(PLAN, {STORED.key: STORED} if ok else {})))
Act = Callable[[Store], object]
ACTS: dict[str, Act] = {
    "publish_result": lambda store: store.publish(NEW),
    "publish_failure": lambda store: store.publish(replace(NEW, status="failed", outcome=None)),
    "publish_conflict": lambda store: store.publish(replace(STORED, outcome=Outcome(100, 1))),
    "replace_damaged": lambda store: store.publish(DAMAGED),
    "quarantine": lambda store: store.read(DAMAGED.key),
    "write_plan": lambda store: store.write_plan(replace(PLAN, suite="changed")),
    "write_all_tables": lambda store: write_results(store.folder, TABLES(True)),
    "merge_another": lambda store: merge(store, Store(store.folder.with_name("other"))),
    "start_anew": lambda store: Store.create(store.folder.with_name("anew")).publish(NEW),
}


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)  # it shows after a power failure alone, and is slow


@pytest.fixture
def original(tmp_path: Path) -> Path:
    """A folder of two result folders: one holds a stored and a damaged record, the other the stored and a new one."""
    store, other = Store.create(tmp_path / "before/suite"), Store.create(tmp_path / "before/other")
    for made in (store, other):
        made.publish(STORED)
        made.write_plan(PLAN)
    other.publish(NEW)
    store.publish(DAMAGED)
    store.path(DAMAGED.key).write_bytes(b"damaged")
    write_results(store.folder, TABLES(False))
    return tmp_path / "before"


def check_intact(store: Store, faulty: Faulty) -> None:
    fresh = Store(store.folder, repair=False)
    assert fresh.read(STORED.key) == STORED
    assert fresh.read(NEW.key) in (None, NEW)
    assert fresh.read_plan().suite in {"suite", "changed"}
    assert (store.folder / "leaderboard.csv").read_bytes().endswith(b"\n")
    assert any(path.read_bytes() == b"damaged" for path in store.folder.rglob(f"*{DAMAGED.key}*"))
    if faulty.refused != "unlink":  # what could not be removed stays, and `store verify` removes it later
        assert not [path for path in store.folder.rglob(".*") if atomic.is_temporary(path.name)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "code", "links"),
    [
        ("write_all_tables", errno.ENOSPC, True),  # as a plan is written, but many files
        *itertools.product(sorted(ACTS.keys() - {"write_all_tables"}), (errno.ENOSPC, errno.EIO), (True, False)),
    ],
)
def test_each_file_system_call_may_fail(
    original: Path, tmp_path: Path, name: str, code: int, links: bool, without_links: Callable[[int], None]
) -> None:
    """An action is repeated with another call refused each time, until no call is left."""
    if not links:
        without_links(errno.EPERM)
    act = ACTS[name]
    for at in itertools.count():
        store = Store(shutil.copytree(original, tmp_path / str(at)) / "suite")
        with faults(code, at) as faulty:
            try:
                act(store)
            except StoreError as error:
                (line,) = error.lines
                assert line.startswith(str(tmp_path))
                assert line.endswith(f": {os.strerror(code)}")
        check_intact(store, faulty)
        act(store)
        assert Store(store.folder).read(STORED.key) == STORED
        assert name != "publish_result" or Store(store.folder).read(NEW.key) == NEW
        assert verify(Store(store.folder)).bad in ([], [f"{store.path(DAMAGED.key)}: is truncated or not a record"])
        if faulty.refused is None:
            break
    assert len(faulty.calls) == at
    assert "fsync" in faulty.calls


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES])
def test_a_read_only_folder_can_be_read(original: Path, code: int) -> None:
    store = Store(original / "suite")
    for at in range(3):
        with faults(code, at):
            assert store.read(STORED.key) == STORED
            assert store.read_plan() == PLAN
    with faults(code, 0), pytest.raises(StoreError, match=os.strerror(code)):
        write_results(store.folder, TABLES(True))
