"""Runners that are killed and stopped, with real signals to real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from functools import partial
from pathlib import Path

import fake_training
import pytest
from fake_training import fake_expansion, published, trained

from msda_bench.store import Store
from msda_bench.store.check import verify
from tests.running.conftest import PROCESSES, assert_gone, begun, finish, run, start, wait_for

CELLS = 24


def test_after_a_kill_nothing_is_left_and_two_runners_at_once_finish_as_if_nothing_happened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    assert len(trained()) <= len(before) + 2 + 2 * (CELLS - len(before))
    assert set(Counter(published()).values()) == {1}
    verified = verify(Store(folder))
    assert (verified.records, verified.failures, verified.bad, verified.conflicts) == (CELLS, 0, [], [])
    assert verified.quarantined == verified.removed == 0
    expansion = fake_expansion(seeds=6, do=do)
    run(tmp_path / "undisturbed", expansion, fake_training.executor("inline"))
    finished, undisturbed = (Store(path).results(expansion.cells) for path in (folder, tmp_path / "undisturbed"))
    assert finished == undisturbed
    assert sorted(path.name for path in folder.iterdir()) == ["cells", "plan.json"]


@pytest.mark.parametrize(
    ("executor", "signals"),
    [
        ("local", [signal.SIGINT, signal.SIGINT]),
        ("inline", [signal.SIGINT, signal.SIGINT]),
        ("dask", [signal.SIGTERM]),
    ],
)
def test_a_stopped_run_ends_soon_with_130_without_noise(
    tmp_path: Path, executor: str, signals: list[signal.Signals]
) -> None:
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


def test_a_debugger_works_inline(tmp_path: Path) -> None:
    command = [sys.executable, str(PROCESSES / "fake_runner.py"), str(tmp_path / "fake"), "inline", "1", "debug"]
    debug = partial(subprocess.run, capture_output=True, check=True, text=True)
    assert debug(command, input="p 6 * 7\nc\n" * 4).stdout.count("(Pdb) 42\n") == 4
