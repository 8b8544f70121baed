"""Runs a suite: trains what has no result yet."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Generator, Sequence

from msda_bench.running.events import CellFinished, Event, Executor, Noted, Observer
from msda_bench.running.interrupt import Interrupt
from msda_bench.running.jobs import Job, make_jobs
from msda_bench.running.summary import Summary
from msda_bench.running.survey import Survey
from msda_bench.store.store import Store


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
        observer: watches the run.
        together: how many cells a job may hold; more than one where they can train in one stack.

    Raises:
        BenchError: nothing can be trained or stored at all.
    """
    jobs = make_jobs(survey.missing, together)
    watcher = observer or Observer()
    started = time.monotonic()
    notes: list[str] = []
    ended: dict[str, CellFinished] = {}
    interrupt = Interrupt()
    if survey.missing:
        with interrupt, contextlib.ExitStack() as ending:
            watcher.begin(survey)
            ending.callback(watcher.end)
            for event in ending.enter_context(contextlib.closing(_events(jobs, store, executor, interrupt))):
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
