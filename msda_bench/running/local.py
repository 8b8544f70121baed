"""Trains on this machine, in a process for each slot; one that dies or hangs costs only the cell that it trained."""

from __future__ import annotations

import collections
import functools
import os
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from msda_bench.component.base import component
from msda_bench.errors import BenchError
from msda_bench.marker import hookimpl
from msda_bench.plugin_errors import broken_package
from msda_bench.processes import BrokenProcessPool, Worker
from msda_bench.running.execute import Executor, InlineExecutor, Interrupt, JobRunner, Setup, stored_of
from msda_bench.running.jobs import CellFinished, Event, Job, JobStarted, retry
from msda_bench.store.record import Status
from msda_bench.store.store import Store

_LOST_AT_START = 3
_POLL = 0.2
_VISIBLE = "CUDA_VISIBLE_DEVICES"

Slot: TypeAlias = Mapping[str, str]
"""Environment variables of a process."""


@hookimpl
def msda_executors() -> list[type[Executor]]:
    """The built-in executors."""
    return [LocalExecutor, InlineExecutor]


@component
class LocalExecutor(Executor):
    """Processes on this machine, one for each core or GPU."""

    name = "local"

    def run(self, jobs: Iterable[Job], store: Store, interrupt: Interrupt) -> Iterator[Event]:
        """See `Executor`."""
        crew = Crew(self.setup, slots(self.setup.device, self.workers), store, self.timeout)
        try:
            yield from crew.train(jobs, interrupt)
        finally:
            crew.dismiss()


def slots(device: str, workers: int) -> tuple[Slot, ...]:
    """A slot for each worker: one core; with "cuda" also a GPU, which workers share if there are fewer GPUs.

    The GPUs are named as by the driver: the user may have given this process only some of the machine's.
    """
    if device != "cuda":
        return ({},) * workers
    import torch

    count, given = torch.cuda.device_count(), os.environ.get(_VISIBLE)
    gpus = [str(number) for number in range(count)] if given is None else given.split(",")[:count]
    return tuple({_VISIBLE: gpus[number % len(gpus)]} for number in range(workers))


@dataclass
class _Task:
    """A job in a process; `reported` holds the cells whose end was reported, `began` is None until it trains."""

    job: Job
    worker: Worker
    began: float | None = None
    reported: set[str] = field(default_factory=set)

    @property
    def seconds(self) -> float:
        return 0.0 if self.began is None else time.monotonic() - self.began


class Crew:
    """Processes, one for each slot, and the waiting jobs; a thread of a dask worker has a crew of one.

    For `timeout` see `Executor`, for `patience` `Worker`.
    """

    def __init__(
        self,
        setup: Setup,
        slots: Sequence[Slot],
        store: Store,
        timeout: float | None = None,
        patience: float | None = None,
    ) -> None:
        self._setup = setup
        self._workers = [Worker(slot, patience) for slot in slots]
        self._free = collections.deque(self._workers)
        self._store = store
        self._timeout = timeout
        self._waiting: collections.deque[Job] = collections.deque()
        self._running: dict[Future[Event | None], _Task] = {}
        self._lost_at_start = 0

    def train(self, jobs: Iterable[Job], interrupt: Interrupt) -> Iterator[Event]:
        """Trains jobs until all are done or an interrupt is requested; the processes stay until `dismiss`.

        Raises:
            BenchError: nothing can be trained or stored at all.
        """
        self._waiting.extend(jobs)
        while not interrupt.requested and (self._waiting or self._running):
            while self._free and self._waiting:
                task = _Task(self._waiting.popleft(), self._free.popleft())
                self._ask(task, task.job)
            wait(self._running, timeout=_POLL, return_when=FIRST_COMPLETED)
            for future, task in list(self._running.items()):
                yield from self._look(future, task)

    def dismiss(self) -> None:
        """Ends all processes; their published records are safe."""
        for worker in self._workers:
            worker.kill()

    def _ask(self, task: _Task, job: Job | None = None) -> None:
        """Has the process start a job, or go on with its job until the next event."""
        self._running[task.worker.submit(_advance, self._setup, self._store.folder, job)] = task

    def _look(self, future: Future[Event | None], task: _Task) -> Iterator[Event]:
        if not future.done():
            late = self._timeout is not None and task.seconds > self._timeout * len(task.job.keys)
            if late or not task.worker.alive:
                del self._running[future]
                yield from self._lose(task, "timeout" if late else "failed")
            return
        del self._running[future]
        try:
            event = future.result()
        except BrokenProcessPool:
            yield from self._lose(task, "failed")
            return
        if event is None:
            self._free.append(task.worker)
            return
        if isinstance(event, JobStarted):
            task.began, self._lost_at_start = time.monotonic(), 0
        elif isinstance(event, CellFinished):
            task.reported.add(event.key)
        self._ask(task)
        yield event

    def _lose(self, task: _Task, status: Status) -> Iterator[Event]:
        seconds, worker = task.seconds, task.worker
        worker.kill()
        self._free.append(worker)
        if task.began is None:
            self._waiting.appendleft(task.job)
            self._lost_at_start += 1
            if self._lost_at_start >= _LOST_AT_START:
                lost = f"{self._lost_at_start} worker processes in a row {worker.end()} before they began"
                raise BenchError(f"{lost}; free memory, use fewer --workers, or see why with --executor inline")
            return
        unreported = task.job.only(set(task.job.keys) - task.reported)
        job, stored = stored_of(unreported, self._store)  # it may have died between publishing and reporting
        yield from stored
        if job.keys:
            reason = f"took longer than {self._timeout:g} s" if status == "timeout" else worker.end()
            why = f"{'their' if len(job.keys) > 1 else 'its'} process {reason}"
            jobs, event = retry(job, why, self._store, status=status, seconds=seconds)
            self._waiting.extend(jobs)
            yield event


class _Training:
    """The training in a worker process, one event at a time."""

    def __init__(self, setup: Setup, folder: Path) -> None:
        self._runner = JobRunner(setup.load(), Store(folder, sealed=False))
        self._events: Iterator[Event] = iter(())

    def advance(self, job: Job | None) -> Event | None:
        if job is not None:
            self._events = self._runner.run(job)
        return next(self._events, None)


_training = functools.cache(_Training)
"""The training that a worker process keeps between two calls."""


def _advance(setup: Setup, folder: Path, job: Job | None) -> Event | None:
    """Starts a job, or goes on with the last one: its next event, or None at its end.

    Raises:
        BenchError: the user can fix it, and no other process could train, either.
        RuntimeError: any other fault, with its traceback.
    """
    try:
        return _training(setup, folder).advance(job)
    except BenchError:
        raise
    except BaseException as error:  # noqa: BLE001 - some cannot be sent to another process
        fault = broken_package(error) or RuntimeError(f"a worker process failed:\n{traceback.format_exc()}")
        raise fault from None
