"""Trains in this very process, one job after the other: for debuggers and profilers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from msda_bench.errors import Interrupted
from msda_bench.running.events import Event, JobStarted
from msda_bench.running.execute import JobRunner
from msda_bench.running.interrupt import Interrupt
from msda_bench.running.jobs import Job
from msda_bench.running.trainer import ENGINE, load_trainer
from msda_bench.store.store import Store


@dataclass(frozen=True)
class InlineExecutor:
    """The executor without processes; a cell that crashes takes the run with it, a rerun goes on behind it.

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
