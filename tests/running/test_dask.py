"""The dask executor survives the loss of parts of a cluster of real processes."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import ClassVar

import fake_training
import pytest
from distributed import Client
from fake_training import fake_expansion

from msda_bench.executors import BenchError, Store, StoreError
from msda_bench.store.sweep import verify
from msda_bench_dask.crews import Crews
from tests.running.test_crashes import finish, start, wait_for
from tests.running.test_executors import assert_gone, run

SEEDS = 6
CELLS = 4 * SEEDS


@dataclass
class Cluster:
    """A scheduler and two workers, each a single-threaded process; cells take `nap` seconds."""

    stranger: ClassVar[str | None] = None
    """The part of the cluster without msda-bench, if any."""
    nanny: ClassVar[str] = "--no-nanny"

    folder: Path
    nap: str
    scheduler: subprocess.Popen[bytes] = field(init=False)
    workers: list[subprocess.Popen[bytes]] = field(init=False)
    address: str = field(init=False)

    def __post_init__(self) -> None:
        self.folder.mkdir()
        file = self.folder / "scheduler.json"
        options = ["--no-dashboard", "--scheduler-file", str(file)]
        self.scheduler = self._start("scheduler", "--host", "127.0.0.1", "--port", "0", *options)
        while not (file.exists() and file.read_text().endswith("}")):
            assert self.scheduler.poll() is None, (self.folder / "log").read_text()
            time.sleep(0.05)
        self.address = json.loads(file.read_text())["address"]
        self.workers = []
        self.hire()
        self.hire()

    def hire(self) -> None:
        """Starts a worker."""
        place = ["--local-directory", str(self.folder), "--memory-limit", "0"]
        lone = ["--nthreads", "1", self.nanny, "--no-dashboard", "--host", "127.0.0.1"]
        self.workers.append(self._start("worker", self.address, *lone, *place))

    def _start(self, part: str, *options: str) -> subprocess.Popen[bytes]:
        hidden = "import sys; sys.modules['msda_bench'] = None; " if part == self.stranger else ""
        command = [sys.executable, "-c", f"{hidden}from distributed.cli.dask_{part} import main; main()", *options]
        with (self.folder / "log").open("ab") as log:
            environ = os.environ | {"FAKE_TRAINING_NAP": self.nap}
            return subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder, env=environ)

    def wait_for_workers(self) -> None:
        with Client(self.address, set_as_default=False) as client:
            client.wait_for_workers(len(self.workers))

    def end(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


@contextlib.contextmanager
def cluster(folder: Path, nap: str = "0.1") -> Iterator[Cluster]:
    made = Cluster(folder, nap)
    try:
        yield made
    finally:
        made.end()


dask = partial(fake_training.executor, "dask")


def wait_until_said(runner: subprocess.Popen[bytes], text: str) -> None:
    assert runner.stderr is not None
    os.set_blocking(runner.stderr.fileno(), False)
    said, end = b"", time.monotonic() + 60
    while text.encode() not in said:
        assert time.monotonic() < end, said
        time.sleep(0.05)
        said += runner.stderr.read() or b""
    os.set_blocking(runner.stderr.fileno(), True)


def assert_each_published_once(folder: Path) -> None:
    assert Store(folder).keys() == set(fake_expansion(seeds=SEEDS, do="nap").cells)
    assert set(Counter(fake_training.published()).values()) == {1}
    found = verify(Store(folder))
    assert (found.records, found.bad, found.conflicts) == (CELLS, [], [])


def test_a_local_cluster_trains_and_fails_as_the_local_executor(tmp_path: Path) -> None:
    faults = {("A", "t0", 0): "exit:0", ("A", "t1", 0): "hang", ("B", "t0", 0): "no-memory"}
    expansion = fake_expansion(faults=faults)
    summary = run(tmp_path / "s", expansion, dask(timeout=1.5))
    assert sorted((event.status, event.message) for event in summary.failed) == [
        ("failed", "its process exited with code 0 (2 attempts)"),
        ("oom", "MemoryError: no room for 1 TiB"),
        ("timeout", "its process took longer than 1.5 s"),
    ]
    assert summary.trained == 5
    assert os.getpid() not in fake_training.pids()
    assert_gone(fake_training.pids())
    assert sorted(path.name for path in (tmp_path / "s").iterdir()) == ["cells"]


def test_a_folder_that_a_worker_cannot_see_is_reported_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextlib.contextmanager
    def elsewhere(folder: Path) -> Iterator[Path]:
        yield folder / ".another machine's token"

    monkeypatch.setattr("msda_bench_dask.dispatch.token_in", elsewhere)
    monkeypatch.setattr("msda_bench_dask.crews._PAUSE", 0.01)
    with pytest.raises(StoreError, match="does not see this folder; let --out be one that all workers share") as caught:
        run(tmp_path / "s", fake_expansion(), dask())
    assert len(caught.value.lines) == 1
    assert fake_training.trained() == []


def test_a_worker_with_another_version_is_reported_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Crews.setup

    def setup(self: Crews, worker: object) -> None:
        self._version = "99.0"
        plain(self, worker)  # type: ignore[arg-type]

    monkeypatch.setattr(Crews, "setup", setup)
    with pytest.raises(BenchError, match=r"has msda-bench .* and the command 99\.0; install the same"):
        run(tmp_path / "s", fake_expansion(), dask())
    assert fake_training.trained() == []


@contextlib.contextmanager
def impostor(words: bytes = b"") -> Iterator[tuple[str, threading.Event]]:
    """The address of a server that accepts, sends the words and waits; and whether a client has connected."""
    came = threading.Event()
    guests = []

    def welcome() -> None:
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
def test_a_server_that_is_not_a_scheduler_is_reported_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str, words: bytes, why: str
) -> None:
    monkeypatch.setattr("msda_bench_dask.cluster.ANSWER", 1.0)
    with impostor(words) as (place, _), pytest.raises(BenchError) as caught:
        run(tmp_path / "s", fake_expansion(), dask(scheduler=f"{protocol}://{place}"))
    (line,) = caught.value.lines
    assert caught.value.exit_code == 2
    assert line.startswith(f"--scheduler {protocol}://{place}: no dask scheduler answers there (")
    assert why in line


def test_a_run_that_waits_for_a_scheduler_can_be_stopped(tmp_path: Path) -> None:
    with impostor() as (place, came):
        runner = start(tmp_path / "s", 0, f"tcp://{place}")
        assert came.wait(60)
        runner.send_signal(signal.SIGTERM)
        _, errors = runner.communicate(timeout=8)  # less than a scheduler has to answer
    assert (runner.returncode, errors) == (130, b"")


@pytest.mark.slow
@pytest.mark.parametrize("part", ["scheduler", pytest.param("worker", marks=pytest.mark.nightly)])
def test_a_cluster_without_msda_bench_is_reported_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    monkeypatch.setattr(Cluster, "stranger", part)
    with cluster(tmp_path / "cluster") as made:
        made.wait_for_workers()
        with pytest.raises(
            BenchError, match=r"cannot take the jobs \(.*msda_bench.*need the same msda-bench"
        ) as caught:
            run(tmp_path / "s", fake_expansion(), dask(scheduler=made.address))
    assert len(caught.value.lines) == 1


@pytest.mark.slow
def test_a_run_survives_its_workers_and_a_rerun_its_scheduler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_TRAINING_TELL", "1")
    with cluster(tmp_path / "first") as made:
        runner = start(tmp_path / "s", 0, made.address, str(SEEDS))
        wait_for(runner, 4)
        for worker in made.workers:
            worker.kill()
            worker.wait()
        assert_gone(fake_training.pids())
        wait_until_said(runner, f"the dask cluster {made.address} has no workers; the run waits for one")
        made.hire()
        wait_for(runner, 10)
        made.scheduler.kill()
        code, errors = finish(runner)
        assert code == 1
        line = f"the dask cluster {made.address} was lost; finished cells are stored; run it again to resume"
        assert line in errors.decode()
        assert "Traceback" not in errors.decode()
    assert_gone(fake_training.pids())
    assert 0 < len(Store(tmp_path / "s").keys()) < CELLS
    with cluster(tmp_path / "second", nap="0.02") as made:
        code, errors = finish(start(tmp_path / "s", 0, made.address, str(SEEDS)))
        assert code == 0, errors.decode()
    assert_each_published_once(tmp_path / "s")
    assert_gone(fake_training.pids())


@pytest.mark.slow
def test_a_cell_that_kills_its_dask_worker_costs_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # By default dask tries four workers, and gives each a task to wait, which it blames too.
    monkeypatch.setenv("DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES", "0")
    monkeypatch.setenv("DASK_DISTRIBUTED__SCHEDULER__WORKER_SATURATION", "1.0")
    expansion = fake_expansion(faults={("A", "t0", 0): "orphan"})
    with cluster(tmp_path / "cluster") as made:
        made.hire()
        summary = run(tmp_path / "s", expansion, dask(scheduler=made.address))
        assert [worker.poll() for worker in made.workers].count(None) == 1
    (failed,) = summary.failed
    assert (failed.status, failed.message) == ("failed", "the dask workers that had it died (2 attempts)")
    assert expansion.cells[failed.key].scheme.params["do"] == "orphan"
    assert summary.trained + summary.found == 7
    assert_gone(fake_training.pids())


@pytest.mark.slow
def test_a_stopped_run_ends_its_workers_training_below_a_nanny_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Cluster, "nanny", "--nanny")
    with cluster(tmp_path / "cluster", nap="600") as made:
        runner = start(tmp_path / "s", 0, made.address)
        wait_for(runner, 2)
        runner.send_signal(signal.SIGINT)
        _, errors = runner.communicate(timeout=10)
        assert (runner.returncode, errors) == (130, b"")
        assert_gone(fake_training.pids())
        assert len(fake_training.trained()) == 2
