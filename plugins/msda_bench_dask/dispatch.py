"""The jobs of a run as tasks of dask."""

from __future__ import annotations

import contextlib
import queue
import time
import uuid
from collections.abc import Iterable, Iterator

from distributed import CancelledError, Client, Future, KilledWorker

from msda_bench.executors import (
    BenchError,
    Event,
    Executor,
    Interrupt,
    Interrupted,
    Job,
    JobStarted,
    Noted,
    Store,
    describe,
    retry,
    slots,
    stored_of,
)
from msda_bench_dask.cluster import ANSWER, LostClusterError, connected, registered
from msda_bench_dask.crews import Crews, token_in, train_task

_POLL = 0.2
_LOOK = 2.0
"""Seconds between two checks of the workers."""


def train(executor: Executor, jobs: Iterable[Job], store: Store, interrupt: Interrupt) -> Iterator[Event]:
    """Submits each job as one task to the scheduler; a Crew in each dask worker trains it."""
    where = executor.scheduler or "of this process"
    with contextlib.ExitStack() as stack:
        try:
            with interrupt.raising():
                client = stack.enter_context(connected(executor.scheduler, executor.workers))
                token = stack.enter_context(token_in(store.folder.absolute()))
                places = slots(executor.setup.device, executor.workers) if executor.scheduler is None else ({},)
                plugin = Crews(executor.setup, places, executor.timeout, token)
                stack.enter_context(registered(plugin, plugin.name, client, where))
        except Interrupted:
            return
        dispatch = _Dispatch(client, where, plugin.name, store)
        stack.callback(dispatch.cancel)
        yield from dispatch.train(jobs, interrupt)


class _Dispatch:
    """The jobs submitted to the scheduler."""

    def __init__(self, client: Client, where: str, plugin: str, store: Store) -> None:
        self._client = client
        self._where = where
        self._plugin = plugin
        self._store = store
        self._jobs: dict[str, tuple[Job, Future[list[Event]]]] = {}
        self._done: queue.SimpleQueue[Future[list[Event]]] = queue.SimpleQueue()
        self._alone = False
        self._next_look = 0.0

    def train(self, jobs: Iterable[Job], interrupt: Interrupt) -> Iterator[Event]:
        """Submits all jobs to the scheduler and reports their events."""
        for job in jobs:
            yield self._submit(job)
        yield from self._look()
        while self._jobs and not interrupt.requested:
            try:
                future = self._done.get(timeout=_POLL)
            except queue.Empty:
                yield from self._look()
            else:
                yield from self._hear(future)

    def cancel(self) -> None:
        """Cancels the jobs that have not begun."""
        with contextlib.suppress(Exception):  # the scheduler is lost, and the jobs with it
            self._client.cancel([future for _, future in self._jobs.values()], force=True)

    def _look(self) -> Iterator[Event]:
        """Checks now and then that there are workers: without any, jobs wait for ever without a message."""
        if time.monotonic() < self._next_look or self._client.status != "running":
            return
        self._next_look = time.monotonic() + _LOOK
        alone = not self._client.scheduler_info()["workers"]
        if alone and not self._alone:
            yield Noted(f"the dask cluster {self._where} has no workers; the run waits for one")
        self._alone = alone

    def _submit(self, job: Job) -> Event:
        key = f"msda-bench-{job.keys[0][:12]}-{uuid.uuid4().hex}"
        future = self._client.submit(train_task, job, self._plugin, key=key, pure=False)
        self._jobs[key] = job, future
        future.add_done_callback(self._done.put)
        return JobStarted(job.keys)

    def _hear(self, future: Future[list[Event]]) -> Iterator[Event]:
        job, _ = self._jobs.pop(str(future.key))
        try:
            events = future.result(timeout=ANSWER)
        except (KilledWorker, CancelledError, OSError) as error:  # a TimeoutError is an OSError
            time.sleep(_POLL)  # gives the client time to notice that the scheduler is gone
            if self._client.status != "running":
                lost = f"the dask cluster {self._where} was lost"
                raise LostClusterError(f"{lost}; finished runs are stored; run it again to resume") from error
            yield from self._again(job)
        except BenchError:
            raise
        except Exception as error:
            raise RuntimeError(f"a dask task failed: {describe(error)}") from error
        else:
            yield from events

    def _again(self, job: Job) -> Iterator[Event]:
        """Retries a job whose dask workers died, with its events; dask also blames jobs that only waited for one."""
        left, stored = stored_of(job, self._store)
        yield from stored
        if left.keys:
            them = "them" if len(left.keys) > 1 else "it"
            jobs, event = retry(left, f"the dask workers that had {them} died", self._store)
            yield event
            yield from map(self._submit, jobs)
