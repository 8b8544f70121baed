"""Makes the fake training core importable, here and in every process; runs, starts and ends runners."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

PROCESSES = Path(__file__).parent / "processes"
sys.path.insert(0, str(PROCESSES))  # before test modules are imported; worker processes inherit it

import fake_training  # noqa: E402

from msda_bench.cli.main import main  # noqa: E402
from msda_bench.executors import Job  # noqa: E402
from msda_bench.running.runner import missing_runs, run_suite  # noqa: E402
from msda_bench.store import Store  # noqa: E402
from tests.logs import contents  # noqa: E402


@pytest.fixture(autouse=True)
def fake_core(monkeypatch, tmp_path):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (str(PROCESSES), os.environ.get("PYTHONPATH")))))
    monkeypatch.setenv(fake_training.LOG, str(tmp_path / "trained.log"))
    monkeypatch.setattr(Store, "publish", fake_training.publish)


def run(folder, expansion, executor, together=1, *, go_on=False):
    store = Store.create(folder)
    state = missing_runs(expansion, store)
    return run_suite(state, store, executor, None, together, keep_going=go_on)


def job_of(*cells):
    return Job(tuple(cell.key for cell in cells), cells)


def start(folder, executor="local", do="ok", seeds=6):
    """A runner in a process group of its own, as in a terminal."""
    command = [sys.executable, str(PROCESSES / "fake_runner.py"), str(folder), executor, str(seeds), do]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)


def finish(runner):
    """The exit code and the output of a process."""
    out, errors = runner.communicate(timeout=60)
    return runner.returncode, out.decode(), errors.decode()


def tables(folder):
    """The files of a complete folder, sealed and with its tables, which `store verify` calls clean."""
    for command in (["store", "seal"], ["leaderboard"], ["store", "verify", "--strict"]):
        assert main([*command, str(folder)]) == 0
    return contents(folder)


def wait_for(happened, process):
    while not happened() and process.poll() is None:
        time.sleep(0.01)


def begun(cells):
    """Whether this many cells have begun in any process."""
    return lambda: len(fake_training.trained()) >= cells


def gone(pid):
    """Whether a process has ended; a zombie counts as ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def assert_gone():
    """No process that trained is left, nor one that it started."""
    deadline = time.monotonic() + 10
    while not all(map(gone, fake_training.pids())) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [pid for pid in fake_training.pids() if not gone(pid)] == []
