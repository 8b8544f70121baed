"""Runners that are killed and stopped, with real signals to real processes."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import fake_training
import killing
import pytest

from msda_bench.results.files import write_results
from msda_bench.results.frame import load_results
from msda_bench.results.leaderboard import analyse
from msda_bench.store import Record, Store
from msda_bench.store.sweep import verify
from tests.running.test_executors import assert_gone

RUNNER = Path(__file__).parent / "processes" / "fake_runner.py"
CELLS = 24
KILLS = 4


def start(folder: Path, seconds: float, executor: str = "local", *more: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, str(RUNNER), str(folder), str(seconds), executor, *more]
    return subprocess.Popen(command, stderr=subprocess.PIPE)


def finish(runner: subprocess.Popen[bytes]) -> tuple[int, bytes]:
    """The exit code and stderr of a process."""
    _, errors = runner.communicate(timeout=60)
    return runner.returncode, errors


def wait_for(process: subprocess.Popen[bytes], cells: int) -> None:
    """Waits until this many cells have begun in any process."""
    while len(fake_training.trained()) < cells and process.poll() is None:
        time.sleep(0.01)


def results(folder: Path) -> dict[str, Record]:
    store = Store(folder)
    return store.results(sorted(store.keys()))


def tables(folder: Path) -> bytes:
    write_results(folder, analyse(load_results(folder)))
    return (folder / "leaderboard.csv").read_bytes() + (folder / "comparisons.csv").read_bytes()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An undisturbed, finished run."""
    folder = tmp_path_factory.mktemp("undisturbed") / "fake"
    environ = os.environ | {"PYTHONPATH": os.pathsep.join([str(RUNNER.parent), *sys.path])}
    subprocess.run([sys.executable, str(RUNNER), str(folder), "0.04", "local"], check=True, env=environ)
    return folder


def assert_as_undisturbed(folder: Path, undisturbed: Path) -> None:
    found = verify(Store(folder))
    assert (found.records, found.failures, found.bad, found.conflicts, found.quarantined) == (CELLS, 0, [], [], 0)
    assert results(folder) == results(undisturbed)
    assert tables(folder) == tables(undisturbed)
    assert sorted(path.name for path in folder.iterdir()) == sorted(path.name for path in undisturbed.iterdir())
    assert not list(folder.rglob("*.tmp"))
    assert set(Counter(fake_training.published()).values()) == {1}


@pytest.mark.parametrize(
    "rounds", [pytest.param(1, marks=pytest.mark.slow), pytest.param(50, marks=pytest.mark.nightly)]
)
def test_killed_at_random_moments_a_rerun_finishes_and_nothing_shows(
    tmp_path: Path, undisturbed: Path, monkeypatch: pytest.MonkeyPatch, rounds: int
) -> None:
    for number in range(rounds):
        monkeypatch.setenv(fake_training.LOG, str(tmp_path / f"{number}.log"))
        folder = tmp_path / str(number) / "fake"
        for _ in range(KILLS):
            before = len(fake_training.trained())
            runner = start(folder, 0.1)
            wait_for(runner, before + random.randint(0, 2))
            time.sleep(random.uniform(0, 0.2))
            runner.kill()
            runner.communicate()
            assert_gone(fake_training.pids())
            if folder.exists():
                assert verify(Store.create(folder)).bad == []
        assert finish(start(folder, 0.04)) == (0, b"")
        assert_as_undisturbed(folder, undisturbed)
        # Only what was in training when the runner was killed was begun again.
        assert len(fake_training.trained()) <= CELLS + 2 * KILLS


@pytest.mark.nightly
def test_a_runner_killed_after_each_step_of_a_publish_finishes_and_nothing_shows(
    tmp_path: Path, undisturbed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "fake"
    monkeypatch.setenv(fake_training.DEATHS, str(killing.deaths(tmp_path / "deaths")))
    for _ in killing.STEPS:
        before = len(Store(folder).keys()) if folder.exists() else 0
        assert finish(start(folder, 0, "inline")) == (-signal.SIGKILL, b"")
        assert verify(Store(folder)).bad == []
        assert before <= len(Store(folder).keys()) <= before + 1
    assert finish(start(folder, 0, "inline")) == (0, b"")
    assert_as_undisturbed(folder, undisturbed)


@pytest.mark.slow
def test_workers_killed_after_each_step_of_a_publish_cost_nothing(
    tmp_path: Path, undisturbed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "fake"
    monkeypatch.setenv(fake_training.DEATHS, str(killing.deaths(tmp_path / "deaths")))
    assert finish(start(folder, 0)) == (0, b"")
    assert sorted(path.name for path in (tmp_path / "deaths").iterdir()) == ["died"]
    assert_as_undisturbed(folder, undisturbed)


def test_no_process_outlives_a_killed_runner_though_it_hears_nothing(tmp_path: Path) -> None:
    runner = start(tmp_path / "fake", 0, "local", "1", "freeze")
    wait_for(runner, 4)  # two cells, and a child of each
    runner.kill()
    runner.communicate()
    assert len(fake_training.pids()) == 4
    assert_gone(fake_training.pids())


@pytest.mark.parametrize(
    ("executor", "signals"),
    [
        ("local", [signal.SIGINT, signal.SIGINT]),
        ("local", [signal.SIGTERM]),
        ("inline", [signal.SIGINT, signal.SIGINT]),
        ("dask", [signal.SIGTERM]),
    ],
    ids=str,
)
def test_a_stopped_run_ends_soon_with_130_and_resumes(
    tmp_path: Path, executor: str, signals: list[signal.Signals]
) -> None:
    folder = tmp_path / "fake"
    runner = start(folder, 600, executor)  # no cell would end by itself
    wait_for(runner, 1 if executor == "inline" else 2)
    begun = len(fake_training.trained())
    for number in signals:
        runner.send_signal(number)
    _, errors = runner.communicate(timeout=10)
    assert runner.returncode == 130
    assert errors == b""
    assert len(fake_training.trained()) == begun
    assert_gone(fake_training.pids())
    found = verify(Store(folder))
    assert (found.records, found.failures, found.bad) == (0, 0, [])


def test_ctrl_c_in_a_terminal_reaches_the_whole_group_and_makes_no_noise(tmp_path: Path) -> None:
    folder = tmp_path / "fake"
    command = [sys.executable, str(RUNNER), str(folder), "0.1", "local"]
    runner = subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True)
    wait_for(runner, 4)
    os.killpg(runner.pid, signal.SIGINT)
    _, errors = runner.communicate(timeout=10)
    assert (runner.returncode, errors) == (130, b"")
    assert_gone(fake_training.pids())
    assert verify(Store(folder)).failures == 0
    assert finish(start(folder, 0.1)) == (0, b"")
    assert verify(Store(folder)).records == CELLS


def test_a_debugger_works_inline(tmp_path: Path) -> None:
    command = [sys.executable, str(RUNNER), str(tmp_path / "fake"), "0", "inline", "1", "debug"]
    typed = "p 6 * 7\nc\n" * 4
    runner = subprocess.run(command, input=typed, capture_output=True, check=True, text=True)
    assert runner.stdout.count("(Pdb) 42\n") == 4


def test_what_components_print_stays_off_stdout(tmp_path: Path) -> None:
    command = [sys.executable, str(RUNNER), str(tmp_path / "fake"), "0", "local"]
    environ = os.environ | {"FAKE_TRAINING_TALK": "a component that talks"}
    runner = subprocess.run(command, capture_output=True, check=True, env=environ)
    assert runner.stdout == b""
    assert b"a component that talks" in runner.stderr


def test_four_runners_on_one_folder_publish_each_cell_once(tmp_path: Path, undisturbed: Path) -> None:
    folder = tmp_path / "fake"
    runners = [start(folder, 0.04) for _ in range(4)]
    assert [finish(runner) for runner in runners] == [(0, b"")] * 4
    assert sorted(fake_training.published()) == sorted(results(undisturbed))
    assert_as_undisturbed(folder, undisturbed)
