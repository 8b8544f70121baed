"""Runs a suite: trains what has no result yet."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass

from msda_bench.running.events import CellFinished, Event, Noted
from msda_bench.running.executors.base import Executor
from msda_bench.running.interrupt import Interrupt
from msda_bench.running.jobs import Job, make_jobs, make_stacks
from msda_bench.running.observer import Observer, Silent
from msda_bench.running.pace import duration
from msda_bench.running.survey import Survey
from msda_bench.store.record import Record
from msda_bench.store.store import Store


@dataclass(frozen=True)
class Summary:
    """What came of a run; cells are counted once, however many methods share them.

    Attributes:
        planned: cells of the plan.
        selected: cells that the run was to bring to an end.
        stored: of these, cells that had a result before.
        trained: cells that this run gave a result.
        found: cells that another runner, or a lost dask worker, gave a result meanwhile.
        failed: what was told of cells that gave none.
        diverged: selected cells whose result is that training diverged.
        missing: selected cells without a result.
        left: cells not selected because of the limit.
        interrupted: whether it was stopped.
        seconds: how long training took in all.
        notes: lines on what must not pass in silence.
        records: the results of all the plan's cells that have one, by key.
    """

    planned: int
    selected: int
    stored: int
    trained: int
    found: int
    failed: tuple[CellFinished, ...]
    diverged: int
    missing: int
    left: int
    interrupted: bool
    seconds: float
    notes: tuple[str, ...]
    records: dict[str, Record]

    @property
    def complete(self) -> bool:
        """Whether every selected cell ended well."""
        return not self.missing and not self.diverged

    def describe(self) -> str:
        """One line with all counts that are not zero, and the time."""
        counts = {
            "stored before": self.stored,
            "trained": self.trained,
            "found trained meanwhile": self.found,
            "failed": len(self.failed),
            "diverged": self.diverged,
            "without a result": self.missing,
            "left by --limit": self.left,
        }
        told = [f"{count} {what}" for what, count in counts.items() if count]
        return (
            f"{self.selected} of {self.planned} cells selected: {', '.join(told) or 'none'}; {duration(self.seconds)}"
        )


def run_suite(
    survey: Survey, store: Store, executor: Executor, observer: Observer | None = None, together: int = 1
) -> Summary:
    """Trains the survey's missing cells; nothing is started when there are none.

    SIGINT and SIGTERM stop it: no new cell starts, all processes are ended, and what was published stays. A cell that
    failed in an earlier run is tried again; one that diverged is not, since it would again.

    Args:
        survey: what there is to do.
        store: the result folder.
        executor: trains.
        observer: is told of everything.
        together: how many cells a job may hold; more than one where they can train in one stack.

    Raises:
        BenchError: nothing can be trained or stored at all.
    """
    jobs = make_jobs(survey.missing) if together == 1 else make_stacks(survey.missing, together)
    watcher = observer or Silent()
    started = time.monotonic()
    notes: list[str] = []
    ended: dict[str, CellFinished] = {}
    interrupt = Interrupt()
    if survey.missing:
        with (
            interrupt,
            _watched(watcher, survey),
            contextlib.closing(_events(jobs, store, executor, interrupt)) as told,
        ):
            for event in told:
                watcher.see(event)
                if isinstance(event, CellFinished):
                    ended[event.key] = event
                elif isinstance(event, Noted):
                    notes.append(event.line)
    return _summary(survey, store, ended, notes, interrupted=interrupt.requested, seconds=time.monotonic() - started)


def _events(
    jobs: Sequence[Job], store: Store, executor: Executor, interrupt: Interrupt
) -> Generator[Event, None, None]:
    yield from map(Noted, store.take_notes())
    yield from executor.run(jobs, store, interrupt)
    yield from map(Noted, store.take_notes())


@contextlib.contextmanager
def _watched(watcher: Observer, survey: Survey) -> Iterator[None]:
    watcher.begin(survey)
    try:
        yield
    finally:
        watcher.end()


def _summary(
    survey: Survey, store: Store, ended: dict[str, CellFinished], notes: list[str], *, interrupted: bool, seconds: float
) -> Summary:
    records = survey.records | store.results(key for key in ended if key not in survey.records)
    selected = {cell.key for cell in survey.selected}
    results = [event for event in ended.values() if event.key in records]
    return Summary(
        planned=len({cell.key for cell in survey.plan.cells}),
        selected=len(selected),
        stored=survey.stored,
        trained=sum(event.trained for event in results),
        found=sum(not event.trained for event in results),
        failed=tuple(event for event in ended.values() if event.key not in records),
        diverged=sum(records[key].status == "diverged" for key in selected & records.keys()),
        missing=len(selected - records.keys()),
        left=survey.left,
        interrupted=interrupted,
        seconds=seconds,
        notes=tuple(notes),
        records=records,
    )
