"""Worker processes on this machine, watched by this one."""

from __future__ import annotations

import collections
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from multiprocessing.connection import wait

from msda_bench.errors import BenchError
from msda_bench.run.events import CellFinished, Event, JobStarted, Noted
from msda_bench.run.executors.process import WorkerProcess
from msda_bench.run.executors.worker import Broken, Ready, Setup
from msda_bench.run.failure import failure
from msda_bench.run.interrupt import Interrupt
from msda_bench.run.jobs import Job
from msda_bench.run.trainer import ENGINE
from msda_bench.store.record import Status
from msda_bench.store.store import Store

ATTEMPTS = 2
"""How often a cell is started whose process is lost."""
_LOST_AT_START = 3
_POLL = 0.2


@dataclass(frozen=True)
class LocalExecutor:
    """The executor with a process for each slot; one that dies or hangs costs only the cell that it trained.

    Attributes:
        device: "cpu" or "cuda".
        workers: how many processes, at least 1.
        timeout: seconds that a cell may take; a job of several may take as many times that. None for any.
        trainer: see `load_trainer`.
        stack: how many cells may train as one on a GPU; None for what its memory holds.
    """

    device: str
    workers: int
    timeout: float | None = None
    trainer: str = ENGINE
    stack: int | None = None

    def run(self, jobs: Iterable[Job], store: Store, interrupt: Interrupt) -> Iterator[Event]:
        """See `Executor.run`."""
        crew = _Crew(self, Setup(self.trainer, self.device, self.stack, store.folder), store, jobs)
        try:
            while crew.has_work and not interrupt.requested:
                yield from crew.turn()
        finally:
            crew.dismiss()


class _Crew:
    """The workers and the jobs that wait for them."""

    def __init__(self, executor: LocalExecutor, setup: Setup, store: Store, jobs: Iterable[Job]) -> None:
        self._executor = executor
        self._setup = setup
        self._store = store
        self._waiting = collections.deque(jobs)
        self._workers: list[WorkerProcess] = []
        self._lost_at_start = 0

    @property
    def has_work(self) -> bool:
        return bool(self._waiting) or any(worker.job for worker in self._workers)

    def turn(self) -> Iterator[Event]:
        """Hires, waits for a moment, hears every worker, and hands out jobs."""
        busy = sum(worker.job is not None for worker in self._workers)
        while len(self._workers) < min(self._executor.workers, busy + len(self._waiting)):
            self._workers.append(WorkerProcess(self._setup))
        wait([thing for worker in self._workers for thing in worker.waitables], timeout=_POLL)
        for worker in list(self._workers):
            yield from self._hear(worker)
        for worker in self._workers:
            if worker.idle and self._waiting:
                job = self._waiting.popleft()
                worker.give(job)
                yield JobStarted(job.keys)

    def dismiss(self) -> None:
        """Ends all workers; what they have published is safe, whatever they were at."""
        while self._workers:
            self._workers.pop().kill()

    def _hear(self, worker: WorkerProcess) -> Iterator[Event]:
        alive = worker.is_alive()  # asked first, so that the last words of a dead one are still heard
        for message in worker.messages():
            if isinstance(message, Ready):
                worker.rest()
                self._lost_at_start = 0
            elif isinstance(message, Broken):
                raise message.error or RuntimeError(f"a worker process failed:\n{message.trace}")
            else:
                if isinstance(message, CellFinished):
                    worker.told.add(message.key)
                yield message
        timeout = self._executor.timeout
        if not alive:
            yield from self._lose(worker, "failed")
        elif worker.job is not None and timeout is not None and worker.seconds > timeout * len(worker.job.keys):
            yield from self._lose(worker, "timeout")

    def _lose(self, worker: WorkerProcess, status: Status) -> Iterator[Event]:
        self._workers.remove(worker)
        worker.kill()
        if worker.job is None:
            self._count_lost(worker)
            return
        untold = set(worker.job.keys) - worker.told
        for key, record in self._store.results(sorted(untold)).items():  # died between publishing and telling
            untold.discard(key)
            yield CellFinished.of(record)
        if not untold:
            return
        reason = f"took longer than {self._executor.timeout:g} s" if status == "timeout" else worker.end()
        yield from self._again(worker, worker.job.only(untold), status, reason)

    def _again(self, worker: WorkerProcess, job: Job, status: Status, reason: str) -> Iterator[Event]:
        if len(job.keys) > 1:
            self._waiting.extend(job.halves())
            yield Noted(f"{len(job.keys)} cells run again in halves, because their process {reason}")
        elif status == "failed" and job.attempt < ATTEMPTS:
            self._waiting.append(replace(job, attempt=job.attempt + 1))
            yield Noted(f"cell {job.keys[0][:12]} runs again, because its process {reason}")
        else:
            count = f" ({job.attempt} attempts)" if job.attempt > 1 else ""
            message = f"its process {reason}{count}"
            record = failure(job.keys[0], job.cells[0], status, message, worker.seconds)
            self._store.publish(record)
            yield CellFinished.of(record)

    def _count_lost(self, worker: WorkerProcess) -> None:
        self._lost_at_start += not worker.ready
        if self._lost_at_start >= _LOST_AT_START:
            hint = "free memory, use fewer --workers, or see why with --executor inline"
            raise BenchError(
                f"{self._lost_at_start} worker processes in a row {worker.end()} before they began; {hint}"
            )
