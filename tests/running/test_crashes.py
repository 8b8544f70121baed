"""Runners that are killed and stopped, with real signals to real processes."""

import os
import random
import signal
import subprocess
import sys
import time
from functools import partial

import fake_training
import pytest
from fake_training import fake_cell, published, trained

from msda_bench.errors import StoreError
from msda_bench.store import Outcome, Record, Store
from msda_bench.store.check import verify
from msda_bench.store.compact import compact
from tests.running.conftest import PROCESSES, assert_gone, begun, finish, start, tables, wait_for

CELLS = 24


def test_after_a_kill_nothing_is_left_and_two_runners_at_once_finish_as_if_nothing_happened(tmp_path, monkeypatch):
    """The workers of the killed runner hear nothing, and have children; components print on stdout."""
    monkeypatch.setenv("FAKE_TRAINING_TALK", "a component that talks")
    folder, marker = tmp_path / "fake", tmp_path / "marker"
    do = f"freeze-until:{marker}"
    killed = start(folder, do=do)
    wait_for(lambda: len(fake_training.pids()) == 4, killed)  # two workers, and a child of each
    killed.kill()
    finish(killed)
    assert len(fake_training.pids()) == 4
    assert_gone()
    assert verify(Store(folder)).bad == []
    before = published()
    assert 2 < len(before) < CELLS
    marker.touch()
    runners = [start(folder, do=do) for _ in range(2)]
    ended = [finish(runner) for runner in runners]
    assert [(code, out) for code, out, _ in ended] == [(0, "")] * 2
    assert any("a component that talks" in errors for *_, errors in ended)  # one may start late and find all trained
    assert sum(key != "grandchild" for key in trained()) <= len(before) + 2 + 2 * (CELLS - len(before))
    assert finish(start(tmp_path / "undisturbed", do=do))[0] == 0
    assert tables(folder) == tables(tmp_path / "undisturbed")


def test_six_kills_at_random_moments_end_in_the_bytes_of_an_undisturbed_run(tmp_path):
    draw, do, seeds = random.Random(6), "sleep:0.02", 20
    for _ in range(6):
        killed = start(tmp_path / "killed", do=do, seeds=seeds)
        wait_for(begun(len(trained()) + draw.randrange(8)), killed)
        time.sleep(draw.uniform(0, 0.1))
        os.killpg(killed.pid, signal.SIGKILL)
        assert finish(killed)[0] == -signal.SIGKILL
    assert len(published()) < 4 * seeds
    for name in ("killed", "undisturbed"):
        assert finish(start(tmp_path / name, do=do, seeds=seeds))[0] == 0
    assert tables(tmp_path / "killed") == tables(tmp_path / "undisturbed")


def test_of_two_that_seal_at_once_one_gives_way_and_no_record_is_lost(tmp_path):
    one, two = fake_cell(seed=1), fake_cell(seed=2)
    other = Store.create(tmp_path / "s")

    class Overtaken(Store):
        def refresh(self):
            super().refresh()
            other.publish(Record(two.key, two.to_json(), "ok", Outcome(2, 1)))
            with pytest.raises(StoreError, match="is being written by another process; try again later"):
                compact(other)
            return self

    slow = Overtaken(tmp_path / "s")
    slow.publish(Record(one.key, one.to_json(), "ok", Outcome(1, 1)))
    assert compact(slow) == compact(other) == []
    assert sorted(path.name for path in slow.folder.iterdir()) == ["records.jsonl.gz"]
    assert Store(slow.folder).refresh().results.keys() == {one.key, two.key}


@pytest.mark.parametrize(
    ("executor", "signals"),
    {
        "local": [signal.SIGINT, signal.SIGINT],
        "inline": [signal.SIGINT, signal.SIGINT],
        "dask": [signal.SIGTERM],
    }.items(),
)
def test_a_stopped_run_ends_soon_with_130_without_noise(tmp_path, executor, signals):
    """The terminal's Ctrl-C reaches the whole process group."""
    runner = start(tmp_path / "fake", executor, "sleep:600")  # no cell would end by itself
    workers = 1 if executor == "inline" else 2
    wait_for(begun(workers), runner)
    for number in signals:
        os.killpg(runner.pid, number)
    out, errors = runner.communicate(timeout=10)
    assert (runner.returncode, out, errors) == (130, b"", b"")
    assert len(trained()) == workers
    assert_gone()
    verified = verify(Store(tmp_path / "fake"))
    assert (verified.records, verified.failures, verified.bad) == (0, 0, [])


def test_a_debugger_works_inline(tmp_path):
    command = [sys.executable, str(PROCESSES / "fake_runner.py"), str(tmp_path / "fake"), "inline", "1", "debug"]
    debug = partial(subprocess.run, capture_output=True, check=True, text=True)
    assert debug(command, input="p 6 * 7\nc\n" * 4).stdout.count("(Pdb) 42\n") == 4
