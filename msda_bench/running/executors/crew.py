"""Trains on this machine, in worker processes watched by this one."""

from __future__ import annotations

import collections
from collections.abc import Iterable, Iterator, Sequence
from multiprocessing.connection import wait

from msda_bench.errors import BenchError
from msda_bench.running.events import CellFinished, Event, JobStarted
from msda_bench.running.execute import Executor, stored_of
from msda_bench.running.executors.process import Slot, WorkerProcess, slots
from msda_bench.running.executors.worker import Broken, Ready, Setup
from msda_bench.running.failure import retry
from msda_bench.running.interrupt import Interrupt
from msda_bench.running.jobs import Job
from msda_bench.store.record import Status
from msda_bench.store.store import Store

_LOST_AT_START = 3
_POLL = 0.2


class LocalExecutor(Executor):
    """The executor with a process for each slot; a process that dies or hangs costs only the cell that it trained."""

    def run(self, jobs: Iterable[Job], store: Store, interrupt: Interrupt) -> Iterator[Event]:
        """See `Executor`."""
        setup = Setup(self.trainer, self.device, self.stack, store.folder)
        crew = Crew(setup, slots(self.device, self.workers), store, self.timeout)
        try:
            yield from crew.train(jobs, interrupt)
        finally:
            crew.dismiss()


class Crew:
    """Worker processes, one for each slot, and the waiting jobs; a thread of a dask worker has a crew of one."""

    def __init__(self, setup: Setup, slots: Sequence[Slot], store: Store, timeout: float | None) -> None:
        self._setup = setup
        self._free = collections.deque(slots)
        self._store = store
        self._timeout = timeout
        self._waiting: collections.deque[Job] = collections.deque()
        self._workers: list[WorkerProcess] = []
        self._lost_at_start = 0

    def train(self, jobs: Iterable[Job], interrupt: Interrupt) -> Iterator[Event]:
        """Trains jobs until all are done or an interrupt is requested; the workers stay until `dismiss`.

        Raises:
            BenchError: nothing can be trained or stored at all.
        """
        self._waiting.extend(jobs)
        while not interrupt.requested and (self._waiting or any(worker.job for worker in self._workers)):
            yield from self._turn()

    def dismiss(self) -> None:
        """Ends all workers; their published records are safe."""
        while self._workers:
            self._dismiss(self._workers[-1])

    def _turn(self) -> Iterator[Event]:
        """Starts workers, waits for a moment, handles every worker's messages, and hands out jobs."""
        busy = sum(worker.job is not None for worker in self._workers)
        while self._free and len(self._workers) < busy + len(self._waiting):
            self._workers.append(WorkerProcess(self._setup, self._free[0]))
            self._free.popleft()
        if not any(worker.idle for worker in self._workers) or not self._waiting:
            wait([worker.pipe for worker in self._workers], timeout=_POLL)
        for worker in list(self._workers):
            yield from self._hear(worker)
        for worker in self._workers:
            if worker.idle and self._waiting and worker.give(self._waiting[0]):
                yield JobStarted(self._waiting.popleft().keys)

    def _dismiss(self, worker: WorkerProcess) -> None:
        self._workers.remove(worker)
        worker.kill()
        self._free.append(worker.slot)

    def _hear(self, worker: WorkerProcess) -> Iterator[Event]:
        alive = worker.alive  # asked first, so that a dead worker's last messages are still read
        for message in worker.messages():
            if isinstance(message, Ready):
                worker.rest()
                self._lost_at_start = 0
            elif isinstance(message, Broken):
                raise message.error or RuntimeError(f"a worker process failed:\n{message.trace}")
            else:
                if isinstance(message, CellFinished):
                    worker.reported.add(message.key)
                yield message
        if not alive:
            yield from self._lose(worker, "failed")
        elif worker.job is not None and self._timeout and worker.seconds > self._timeout * len(worker.job.keys):
            yield from self._lose(worker, "timeout")

    def _lose(self, worker: WorkerProcess, status: Status) -> Iterator[Event]:
        self._dismiss(worker)
        if worker.job is None:
            self._count_lost(worker)
            return
        unreported = worker.job.only(set(worker.job.keys) - worker.reported)
        job, stored = stored_of(unreported, self._store)  # it may have died between publishing and reporting
        yield from stored
        if job.keys:
            reason = f"took longer than {self._timeout:g} s" if status == "timeout" else worker.end()
            why = f"{'their' if len(job.keys) > 1 else 'its'} process {reason}"
            jobs, event = retry(job, why, self._store, status=status, seconds=worker.seconds)
            self._waiting.extend(jobs)
            yield event

    def _count_lost(self, worker: WorkerProcess) -> None:
        self._lost_at_start += not worker.ready
        if self._lost_at_start >= _LOST_AT_START:
            hint = "free memory, use fewer --workers, or see why with --executor inline"
            raise BenchError(
                f"{self._lost_at_start} worker processes in a row {worker.end()} before they began; {hint}"
            )
