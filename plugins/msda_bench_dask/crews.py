"""The code that runs in a dask worker: crews of processes, kept between tasks."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import multiprocessing
import os
import socket
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

from distributed import Worker, WorkerPlugin, get_worker

from msda_bench import __version__
from msda_bench.executors import (
    BenchError,
    Crew,
    Event,
    Interrupt,
    Job,
    JobStarted,
    Noted,
    Setup,
    Slot,
    Store,
    StoreError,
    named,
    temporary,
)
from msda_bench_dask.cluster import LostClusterError

_POLL = 0.05
_TRIES = 10
_PAUSE = 0.5
_PATIENCE = 120.0
"""Seconds after which an idle process ends, in case its runner was killed."""


class Crews(WorkerPlugin):
    """Trains each task's job in a separate process, so that no cell harms the dask worker or blocks its thread.

    A crew is one process; there are as many as the dask worker has threads, and if there are fewer slots the last is
    reused. The token is a file in the result folder.
    """

    def __init__(self, setup: Setup, slots: Sequence[Slot], timeout: float | None, token: Path) -> None:
        self.name = f"msda-bench-{uuid.uuid4().hex}"
        self._setup = setup
        self._slots = tuple(slots)
        self._timeout = timeout
        self._token = token
        self._version = __version__

    def setup(self, worker: Worker) -> None:
        """Called by dask when the worker receives the plugin."""
        self._who = f"the dask worker {worker.address} on {socket.gethostname()}"
        self._stop = Interrupt()
        self._free = collections.deque(self._slots)
        self._idle: collections.deque[tuple[Crew, Store]] = collections.deque()
        self._busy: list[Crew] = []
        process = multiprocessing.current_process()
        if process.daemon:  # as below a nanny; Python would not let it start processes
            process.daemon = False

    async def teardown(self, worker: Worker) -> None:
        """Called by dask when the plugin is removed: all training stops, and no process is left."""
        self._stop.requested = True
        self._dismiss_idle()
        while self._busy:
            await asyncio.sleep(_POLL)

    def train(self, job: Job) -> list[Event]:
        """Trains a job, in a thread of the dask worker.

        Raises:
            BenchError: another version is installed here, the folder is not visible, or nothing can be trained or
            stored.
        """
        if self._version != __version__:
            line = f"{self._who} has msda-bench {__version__} and the command {self._version}; install the same"
            raise BenchError(line)
        _must_see(self._token, self._who)
        crew, store = self._crew()
        self._busy.append(crew)
        try:
            events = [event for event in crew.train([job], self._stop) if not isinstance(event, JobStarted)]
        except BaseException:
            crew.dismiss()
            raise
        else:
            self._idle.append((crew, store))
            if self._stop.requested:
                self._dismiss_idle()
        finally:
            self._busy.remove(crew)
        return [*events, *map(Noted, store.drain_warnings())]

    def _crew(self) -> tuple[Crew, Store]:
        try:
            return self._idle.pop()
        except IndexError:
            store = Store(self._token.parent, sealed=False)
            slot = self._free.popleft() if len(self._free) > 1 else self._free[0]
            return Crew(self._setup, [slot], store, self._timeout, _PATIENCE), store

    def _dismiss_idle(self) -> None:
        while self._idle:
            self._idle.pop()[0].dismiss()


def train_task(job: Job, plugin: str) -> list[Event]:
    """A dask task: checks the store, trains missing runs, publishes, and reports; doing it twice is harmless.

    Raises:
        LostClusterError: the scheduler of this run is gone.
    """
    worker = get_worker()
    if plugin not in worker.plugins:
        raise LostClusterError(f"the dask worker {worker.address} no longer knows this run; run it again to resume")
    return cast("Crews", worker.plugins[plugin]).train(job)


@contextlib.contextmanager
def token_in(folder: Path) -> Iterator[Path]:
    """A temporary file in the folder, with a unique name.

    Raises:
        StoreError: it cannot be written.
    """
    token = temporary(folder / "token")
    with named(folder, "cannot be written"):
        token.touch(exist_ok=False)
    try:
        yield token
    finally:
        with contextlib.suppress(OSError):  # `store verify` removes it later
            token.unlink()


def _must_see(token: Path, who: str) -> None:
    """Checks that this process sees the folder of the token; a network file system may show it some seconds late."""
    for _ in range(_TRIES):
        if os.path.isfile(token):  # noqa: PTH113 - answers no, too, where the path may not be looked at
            return
        time.sleep(_PAUSE)
    raise StoreError(f"{token.parent}: {who} does not see this folder; let --out be one that all workers share")
