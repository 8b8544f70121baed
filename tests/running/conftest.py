"""Makes the fake training core importable, here and in every process; runs, starts and ends runners."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

PROCESSES = Path(__file__).parent / "processes"
sys.path.insert(0, str(PROCESSES))  # before test modules are imported; worker processes inherit it

import fake_training  # noqa: E402

from msda_bench.cli.main import main  # noqa: E402
from msda_bench.executors import Executor, Job  # noqa: E402
from msda_bench.running.runner import Summary, run_suite, survey  # noqa: E402
from msda_bench.store import Store  # noqa: E402
from msda_bench.suite.cell import Cell  # noqa: E402


@pytest.fixture(autouse=True)
def fake_core(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (str(PROCESSES), os.environ.get("PYTHONPATH")))))
    monkeypatch.setenv(fake_training.LOG, str(tmp_path / "trained.log"))
    monkeypatch.setattr(Store, "publish", fake_training.publish)


def run(
    folder: Path, expansion: fake_training.FakeExpansion, executor: Executor, together: int = 1, *, go_on: bool = False
) -> Summary:
    store = Store.create(folder)
    state = survey(expansion, store)  # type: ignore[arg-type]
    return run_suite(state, store, executor, None, together, keep_going=go_on)


def job_of(*cells: Cell) -> Job:
    return Job(tuple(cell.key for cell in cells), cells)


def start(folder: Path, executor: str = "local", do: str = "ok", seeds: int = 6) -> subprocess.Popen[bytes]:
    """A runner in a process group of its own, as in a terminal."""
    command = [sys.executable, str(PROCESSES / "fake_runner.py"), str(folder), executor, str(seeds), do]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)


def finish(runner: subprocess.Popen[bytes]) -> tuple[int, str, str]:
    """The exit code and the output of a process."""
    out, errors = runner.communicate(timeout=60)
    return runner.returncode, out.decode(), errors.decode()


def tables(folder: Path) -> dict[str, bytes]:
    """The files of a complete folder, sealed and with its tables, which `store verify` calls clean."""
    for command in (["store", "seal"], ["leaderboard"], ["store", "verify", "--strict"]):
        assert main([*command, str(folder)]) == 0
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def wait_for(happened: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    while not happened() and process.poll() is None:
        time.sleep(0.01)


def begun(cells: int) -> Callable[[], bool]:
    """Whether this many cells have begun in any process."""
    return lambda: len(fake_training.trained()) >= cells


def gone(pid: int) -> bool:
    """Whether a process has ended; a zombie counts as ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def assert_gone() -> None:
    """No process that trained is left, nor one that it started."""
    deadline = time.monotonic() + 10
    while not all(map(gone, fake_training.pids())) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [pid for pid in fake_training.pids() if not gone(pid)] == []
