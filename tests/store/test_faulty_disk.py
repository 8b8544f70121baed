"""If a system call fails, or the process dies in it, stored records stay intact and one line reports the fault."""

import errno
import functools
import hashlib
import itertools
import os
import shutil
from dataclasses import replace

import numpy as np
import pytest

from msda_bench.errors import StoreError
from msda_bench.store import Outcome, Store
from msda_bench.store.arrays import pack
from msda_bench.store.check import merge, verify
from msda_bench.store.compact import compact
from msda_bench.suite.plan import Experiment, Method, Plan, PlannedRun
from tests.store.conftest import forked, make_record
from tests.store.faulty import faults

STORED, NEW = make_record(), make_record(1)
TABLE = Experiment("t", "toy", "classification", ("bücher",), (Method("a", False, "", ()),), (0,))
PLAN = Plan("suite", (TABLE,), (PlannedRun("t", "a", "bücher", 0, STORED.key),))
DATA = pack({"label": np.arange(3)})
KEPT = replace(NEW, saved={"weights": hashlib.sha256(DATA).hexdigest()}, arrays={"weights": DATA})
ACTS = {
    "publish": lambda store: store.publish(KEPT),
    "publish_twice": lambda store: [store.publish(replace(STORED, outcome=Outcome(100, 1))), store.publish(NEW)],
    "write_plan": lambda store: store.write_plan(replace(PLAN, suite="changed")),
    "merge_another": lambda store: merge(store, Store(store.folder.with_name("other"))),
    "seal": compact,
    "start_anew": lambda store: Store.create(store.folder.with_name("anew")).publish(NEW),
}


@pytest.fixture
def original(tmp_path):
    """A folder of two result folders: one holds a sealed record and a log, the other a log with a new one."""
    store, other = Store.create(tmp_path / "before/suite"), Store.create(tmp_path / "before/other")
    for made in (store, other):
        made.publish(STORED)
        made.write_plan(PLAN)
    compact(store)
    store.publish(replace(STORED, status="failed", outcome=None))
    store.publish(make_record(2, saved=KEPT.saved, arrays=KEPT.arrays))
    other.publish(KEPT)
    return tmp_path / "before"


def check_intact(folder):
    fresh = Store(folder).refresh()
    assert fresh.read(STORED.key) == STORED
    assert fresh.read(NEW.key) in (None, NEW, replace(KEPT, arrays={}))
    kept = fresh.read(make_record(2).key)
    assert fresh.kept(kept, "weights")["label"].tolist() == [0, 1, 2]
    assert len(fresh.failures[STORED.key]) == 1
    assert fresh.read_plan().suite in {"suite", "changed"}


def check_done(act, name, folder):
    """Repeated, the action finishes what it began."""
    act(Store(folder))
    check_intact(folder)
    fresh = Store(folder).refresh()
    assert (NEW.key in fresh.results) == (name in {"publish", "publish_twice", "merge_another"})
    assert all("ends in an unfinished line" in line for line in verify(fresh).bad)
    if name == "seal":
        assert sorted(path.name for path in folder.iterdir()) == ["arrays.zip", "plan.json", "records.jsonl.gz"]


def unfinished(folder):
    return [*folder.rglob(".*.tmp")]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("name", ACTS)
def test_each_file_system_call_may_fail(original, tmp_path, name, code):
    """An action is repeated with another call refused each time, until no call is left."""
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
        assert Store(folder).refresh().faults == []  # no part of a line is left
        if faulty.refused != "unlink":  # what could not be removed stays, and `store verify` removes it later
            assert unfinished(folder) == []
        if faulty.refused is None:
            break
        check_done(act, name, folder)
    assert len(faulty.calls) == at
    assert "fsync" in faulty.calls


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("name", ["publish", "seal", "merge_another"])
def test_killed_at_any_step_nothing_is_lost(original, tmp_path, name):
    def die(at, store):
        with faults(None, at):
            ACTS[name](store)

    for at in itertools.count():
        folder = shutil.copytree(original, tmp_path / str(at)) / "suite"
        (code,) = forked(functools.partial(die, at, Store(folder)))
        check_intact(folder)
        check_done(ACTS[name], name, folder)
        assert unfinished(folder) == []
        if code == 0:
            break
        assert code == -9
    assert at >= 4


def test_a_line_that_is_written_in_part_is_cut_off_as_on_a_full_disk(store, monkeypatch):
    path, write = store.publish(STORED), os.write
    before = path.read_bytes()
    monkeypatch.setattr(os, "write", lambda handle, data: write(handle, data[:9]))
    with pytest.raises(StoreError, match=os.strerror(errno.ENOSPC)):
        store.publish(NEW)
    assert path.read_bytes() == before


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES])
def test_a_read_only_folder_can_be_read(original, code):
    store = Store(original / "suite")
    with faults(code, 0):
        assert store.refresh().read(STORED.key) == STORED
        assert store.read_plan() == PLAN
        with pytest.raises(StoreError, match=os.strerror(code)):
            store.write_plan(PLAN)
