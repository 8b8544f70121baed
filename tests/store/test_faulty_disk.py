"""If a system call fails, or the process dies in it, stored records stay intact and one line reports the fault."""

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
from msda_bench.store import Outcome, Store
from msda_bench.store.sweep import merge, verify
from msda_bench.suite.plan import Experiment, Method, Plan, PlannedCell
from tests.store.conftest import forked, make_record
from tests.store.faulty import faults

STORED, NEW, DAMAGED = make_record(), make_record(seed=1), make_record(seed=2)
TABLE = Experiment("t", "toy", "classification", ("bücher",), (Method("a", False, "", ()),), (0,))
PLAN = Plan("suite", (TABLE,), (PlannedCell("t", "a", "bücher", 0, STORED.key),))
Act = Callable[[Store], object]
ACTS: dict[str, Act] = {
    "publish_result": lambda store: store.publish(NEW),
    "publish_failure": lambda store: store.publish(replace(NEW, status="failed", outcome=None)),
    "publish_conflict": lambda store: store.publish(replace(STORED, outcome=Outcome(100, 1))),
    "replace_damaged": lambda store: store.publish(DAMAGED),
    "quarantine": lambda store: store.read(DAMAGED.key),
    "write_plan": lambda store: store.write_plan(replace(PLAN, suite="changed")),
    "merge_another": lambda store: merge(store, Store(store.folder.with_name("other"))),
    "start_anew": lambda store: Store.create(store.folder.with_name("anew")).publish(NEW),
}


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
    return tmp_path / "before"


def check_intact(folder: Path) -> None:
    fresh = Store(folder, repair=False)
    assert fresh.read(STORED.key) == STORED
    assert fresh.read(NEW.key) in (None, NEW)
    assert fresh.read_plan().suite in {"suite", "changed"}
    assert any(path.read_bytes() == b"damaged" for path in folder.rglob(f"*{DAMAGED.key}*"))


def check_done(act: Act, name: str, folder: Path) -> None:
    """Repeated, the action finishes what it began."""
    act(Store(folder))
    assert Store(folder).read(STORED.key) == STORED
    assert name != "publish_result" or Store(folder).read(NEW.key) == NEW
    assert verify(Store(folder)).bad in ([], [f"{Store(folder).path(DAMAGED.key)}: is truncated or not a record"])


def unfinished(folder: Path) -> list[Path]:
    return [path for path in folder.rglob(".*") if atomic.is_temporary(path.name)]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("name", ACTS)
def test_each_file_system_call_may_fail(
    original: Path, tmp_path: Path, name: str, code: int, without_links: Callable[[int], None]
) -> None:
    """An action is repeated with another call refused each time, until no call is left; EIO without hard links."""
    if code == errno.EIO:
        without_links(errno.EPERM)
    act = ACTS[name]
    for at in itertools.count():
        folder = shutil.copytree(original, tmp_path / str(at)) / "suite"
        store = Store(folder)
        with faults(code, at) as faulty:
            try:
                act(store)
            except StoreError as error:
                (line,) = error.lines
                assert line.startswith(str(tmp_path))
                assert line.endswith(f": {os.strerror(code)}")
        check_intact(folder)
        if faulty.refused != "unlink":  # what could not be removed stays, and `store verify` removes it later
            assert unfinished(folder) == []
        if faulty.refused is None:
            break
        check_done(act, name, folder)
    assert len(faulty.calls) == at
    assert "fsync" in faulty.calls


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("links", [True, False])
@pytest.mark.parametrize("name", ["publish_result", "quarantine", "merge_another"])
def test_killed_at_any_step_the_store_is_clean(
    original: Path, tmp_path: Path, name: str, links: bool, without_links: Callable[[int], None]
) -> None:
    if not links:
        without_links(errno.EPERM)

    def die(at: int, store: Store) -> None:
        with faults(None, at):
            ACTS[name](store)

    for at in itertools.count():
        folder = shutil.copytree(original, tmp_path / str(at)) / "suite"
        (code,) = forked(functools.partial(die, at, Store(folder)))
        if name != "quarantine":  # the damaged file has a temporary name for a moment
            check_intact(folder)
        check_done(ACTS[name], name, folder)
        assert unfinished(folder) == []
        if code == 0:
            break
        assert code == -9
    assert at >= 4


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES])
def test_a_read_only_folder_can_be_read(original: Path, code: int) -> None:
    store = Store(original / "suite")
    with faults(code, 0):
        assert store.read(STORED.key) == STORED
        assert store.read_plan() == PLAN
        with pytest.raises(StoreError, match=os.strerror(code)):
            store.write_plan(PLAN)
