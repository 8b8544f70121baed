"""The dask executor survives the loss of parts of a cluster of real processes."""

import contextlib
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import fake_training
import pytest
from distributed import Client
from fake_training import fake_expansion, trained

from msda_bench.executors import BenchError, Store, StoreError
from msda_bench.store.check import verify
from msda_bench_dask import cluster as connection
from msda_bench_dask.crews import Crews
from tests.running.conftest import assert_gone, begun, finish, run, start, wait_for

CELLS = 24
dask = partial(fake_training.executor, "dask")


@dataclass
class Cluster:
    """A scheduler and two workers, each a single-threaded process."""

    folder: Path
    nanny: str = "--no-nanny"
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def __post_init__(self):
        self.folder.mkdir()
        file = self.folder / "scheduler.json"
        options = ["--no-dashboard", "--scheduler-file", str(file)]
        self.scheduler = self._start("scheduler", "--host", "127.0.0.1", "--port", "0", *options)
        while not (file.exists() and file.read_text().endswith("}")):
            assert self.scheduler.poll() is None, (self.folder / "log").read_text()
            time.sleep(0.05)
        self.address = json.loads(file.read_text())["address"]
        self.hire()
        self.hire()

    def hire(self):
        """Starts a worker."""
        place = ["--local-directory", str(self.folder), "--memory-limit", "0"]
        lone = ["--nthreads", "1", self.nanny, "--no-dashboard", "--host", "127.0.0.1"]
        self.workers.append(self._start("worker", self.address, *lone, *place))

    def _start(self, part, *options):
        command = [sys.executable, "-c", f"from distributed.cli.dask_{part} import main; main()", *options]
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder)

    def close(self):
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


def wait_until_said(runner, text):
    os.set_blocking(runner.stderr.fileno(), False)
    said, end = b"", time.monotonic() + 60
    while text.encode() not in said:
        assert time.monotonic() < end, said
        time.sleep(0.05)
        said += runner.stderr.read() or b""
    os.set_blocking(runner.stderr.fileno(), True)


def unseen(monkeypatch):
    @contextlib.contextmanager
    def elsewhere(folder):
        yield folder / ".another machine's token"

    monkeypatch.setattr("msda_bench_dask.dispatch.token_in", elsewhere)
    monkeypatch.setattr("msda_bench_dask.crews._PAUSE", 0.01)


def other_version(monkeypatch):
    plain = Crews.setup

    def setup(self, worker):
        self._version = "99.0"
        plain(self, worker)

    monkeypatch.setattr(Crews, "setup", setup)


def not_installed(monkeypatch):
    def fail(*_):
        raise ModuleNotFoundError("No module named 'msda_bench_dask'")

    monkeypatch.setattr(Client, "run_on_scheduler", fail)


@pytest.mark.parametrize(
    ("make", "error", "line"),
    [
        (unseen, StoreError, "does not see this folder; let --out be one that all workers share"),
        (other_version, BenchError, r"has msda-bench .* and the command 99\.0; install the same"),
        (
            not_installed,
            BenchError,
            r"cannot take the jobs \(.*No module named 'msda_bench_dask'.*need the same msda-b",
        ),
    ],
)
def test_a_worker_that_cannot_train_is_reported_in_one_line(tmp_path, monkeypatch, make, error, line):
    make(monkeypatch)
    with pytest.raises(error, match=line) as caught:
        run(tmp_path / "s", fake_expansion(), dask())
    assert len(caught.value.lines) == 1
    assert trained() == []


@contextlib.contextmanager
def impostor(words=b""):
    """The address of a server that accepts, sends the words and waits; and whether a client has connected."""
    came = threading.Event()
    guests = []

    def welcome():
        with contextlib.suppress(OSError):
            while True:
                guests.append(server.accept()[0])
                came.set()
                guests[-1].sendall(words)

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=welcome, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}", came
        server.shutdown(socket.SHUT_RDWR)
        for guest in guests:
            guest.close()


@pytest.mark.parametrize(
    ("protocol", "words", "why"),
    [
        ("tcp", b"", "no answer within 1 s"),
        ("tcp", b"HTTP/1.0 400 Bad Request\r\n\r\n" * 9, "MemoryError"),
        ("tls", b"", "TLS expects a"),
        ("http", b"", "unknown address scheme 'http'"),
    ],
    ids=["silent", "web server", "tls", "http"],
)
def test_a_server_that_is_not_a_scheduler_is_reported_in_one_line(tmp_path, monkeypatch, protocol, words, why):
    monkeypatch.setattr(connection, "ANSWER", 1.0)
    with impostor(words) as (place, _), pytest.raises(BenchError) as caught:
        run(tmp_path / "s", fake_expansion(), dask(scheduler=f"{protocol}://{place}"))
    (line,) = caught.value.lines
    assert caught.value.exit_code == 2
    assert line.startswith(f"--scheduler {protocol}://{place}: no dask scheduler answers there (")
    assert why in line


def test_a_run_that_waits_for_a_scheduler_can_be_stopped(tmp_path):
    with impostor() as (place, came):
        runner = start(tmp_path / "s", f"tcp://{place}")
        assert came.wait(60)
        runner.send_signal(signal.SIGTERM)
        out, errors = runner.communicate(timeout=8)  # less than a scheduler has to answer
    assert (runner.returncode, out, errors) == (130, b"", b"")


def test_a_run_survives_its_workers_and_a_rerun_its_scheduler(tmp_path):
    with contextlib.closing(Cluster(tmp_path / "cluster")) as made:
        runner = start(tmp_path / "s", made.address, "sleep:0.1")
        wait_for(begun(4), runner)
        for worker in made.workers:
            worker.kill()
            worker.wait()
        assert_gone()
        wait_until_said(runner, f"the dask cluster {made.address} has no workers; the run waits for one")
        made.hire()
        wait_for(begun(10), runner)
        made.scheduler.kill()
        code, _, errors = finish(runner)
    assert code == 1
    assert f"{made.address} was lost; finished runs are stored; run it again to resume" in errors
    assert "Traceback" not in errors
    assert_gone()
    assert 0 < len(Store(tmp_path / "s").refresh().results) < CELLS
    assert run(tmp_path / "s", fake_expansion(seeds=6, do="sleep:0.1"), dask()).complete
    verified = verify(Store(tmp_path / "s"))
    assert (verified.records, verified.bad, verified.conflicts) == (CELLS, [], [])


def test_a_cell_that_kills_its_dask_worker_costs_no_other_and_a_stopped_run_leaves_no_process(tmp_path, monkeypatch):
    """Below a nanny, which starts another worker."""
    # By default dask tries four workers, and gives each a task to wait, which it blames too.
    monkeypatch.setenv("DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES", "0")
    monkeypatch.setenv("DASK_DISTRIBUTED__SCHEDULER__WORKER_SATURATION", "1.0")
    expansion = fake_expansion(faults={("A", "t0", 0): "orphan"})
    with contextlib.closing(Cluster(tmp_path / "cluster", "--nanny")) as made:
        summary = run(tmp_path / "s", expansion, dask(scheduler=made.address))
        (failed,) = summary.failed
        assert (failed.status, failed.message) == ("failed", "the dask workers that had it died (2 attempts)")
        assert expansion.cells[failed.key].scheme.params["do"] == "orphan"
        assert summary.trained + summary.elsewhere == 7
        assert_gone()
        runner, before = start(tmp_path / "t", made.address, "sleep:600"), len(trained())
        wait_for(begun(before + 2), runner)
        runner.send_signal(signal.SIGINT)
        out, errors = runner.communicate(timeout=10)
        assert (runner.returncode, out, errors) == (130, b"", b"")
        assert_gone()
        assert len(trained()) == before + 2


def test_a_wait_that_dask_leaves_behind_is_not_reported_when_it_is_collected(caplog):
    """It may be collected at any time after the run, so it is made after it here."""
    with connection.connected(None, 1) as client:
        loop = client.loop.asyncio_loop
    loop.create_future().set_exception(TimeoutError("Timeout"))
    gc.collect()
    assert caplog.messages == []
