"""Trains on this machine: in worker processes that this one watches, or in this very process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from msda_bench.errors import Interrupted
from msda_bench.running.events import Event, JobStarted
from msda_bench.running.execute import ENGINE, JobRunner, load_trainer
from msda_bench.running.executors.crew import Crew
from msda_bench.running.executors.process import slots
from msda_bench.running.executors.worker import Setup
from msda_bench.running.interrupt import Interrupt
from msda_bench.running.jobs import Job
from msda_bench.store.store import Store


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
        setup = Setup(self.trainer, self.device, self.stack, store.folder)
        crew = Crew(setup, slots(self.device, self.workers), store, self.timeout)
        try:
            yield from crew.train(jobs, interrupt)
        finally:
            crew.dismiss()


@dataclass(frozen=True)
class InlineExecutor:
    """The executor without processes; a cell that crashes ends the run, and a rerun resumes after it.

    Attributes:
        device: "cpu" or "cuda".
        trainer: see `load_trainer`.
        stack: how many cells may train as one on a GPU; None for what its memory holds.
    """

    device: str
    trainer: str = ENGINE
    stack: int | None = None

    def run(self, jobs: Iterable[Job], store: Store, interrupt: Interrupt) -> Iterator[Event]:
        """See `Executor.run`."""
        runner = JobRunner(load_trainer(self.trainer, self.device, self.stack), store)
        for job in jobs:
            if interrupt.requested:
                return
            yield JobStarted(job.keys)
            try:
                with interrupt.raising():
                    events = list(runner.run(job))
            except Interrupted:
                return
            yield from events
