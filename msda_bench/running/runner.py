"""Runs a suite: compares its plan with a result folder, trains the cells without a result, and counts the outcomes."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from msda_bench.errors import BenchError
from msda_bench.running.execute import Executor, Interrupt, stored_results
from msda_bench.running.jobs import CellFinished, Event, Job, Noted, make_jobs
from msda_bench.store.record import RESULTS
from msda_bench.store.store import Store
from msda_bench.suite.plan import Plan, PlannedRun
from msda_bench.suite.run_spec import RunSpec

if TYPE_CHECKING:
    from msda_bench.suite.expand import Expansion


@dataclass(frozen=True)
class MissingRuns:
    """The runs of a plan that a result folder lacks.

    Attributes:
        plan: everything that the suite asks for.
        selected: the runs that this command is to complete, in the plan's order.
        ended: the results of all the plan's runs that have one, by key.
        to_train: the selected runs without a result, by key, in the plan's order.
        left: runs that were selected and have no result, but exceed the limit.
    """

    plan: Plan
    selected: tuple[PlannedRun, ...]
    ended: dict[str, CellFinished]
    to_train: dict[str, RunSpec]
    left: int

    @property
    def stored(self) -> int:
        """How many different selected runs have a result."""
        return len({cell.key for cell in self.selected} & self.ended.keys())


def missing_runs(
    expansion: Expansion,
    store: Store | None = None,
    chosen: Iterable[PlannedRun] | None = None,
    limit: int | None = None,
) -> MissingRuns:
    """Compares the plan of a suite, or the selected part of it, with a result folder, if there is one.

    Runs beyond the limit are not trained and do not count as selected.

    Raises:
        StoreError: a record cannot be read.
    """
    plan, cells = expansion.plan, expansion.cells
    ended = {} if store is None else stored_results(store, cells)
    wanted = plan.cells if chosen is None else tuple(chosen)
    absent = list(dict.fromkeys(cell.key for cell in wanted if cell.key not in ended))
    to_train = {key: cells[key] for key in absent[:limit]}
    selected = tuple(cell for cell in wanted if cell.key in ended or cell.key in to_train)
    return MissingRuns(plan, selected, ended, to_train, len(absent) - len(to_train))


def shard_of(cells: Iterable[PlannedRun], text: str) -> tuple[PlannedRun, ...]:
    """Part I of N, written `I/N`, in the same order; for machines that do not communicate.

    The parts are disjoint and cover everything: every N-th cell in the order of the keys, stored or not. Their sizes
    differ by one at most, and since keys are hashes, each part has cells of every method.

    Raises:
        BenchError: the text is not a valid part.
    """
    part = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text)
    if part is None or not int(part[1]) < int(part[2]):
        raise BenchError(f"--shard {text!r}: write I/N, part I of N, counted from 0, such as 0/4 to 3/4")
    planned = tuple(cells)
    mine = set(sorted({cell.key for cell in planned})[int(part[1]) :: int(part[2])])
    return tuple(cell for cell in planned if cell.key in mine)


class Observer:
    """Watches a run: `begin`, any number of `see`, `end`, always in the same thread. The base class does nothing."""

    def begin(self, missing: MissingRuns) -> None:
        """Called when training begins."""

    def see(self, event: Event) -> None:
        """Called for each event."""

    def end(self) -> None:
        """Called when training ended, for whatever reason."""


@dataclass(frozen=True)
class Summary:
    """The outcome of a run; a cell that several methods share counts once.

    Attributes:
        planned: cells of the plan; the run was to complete `selected` of them.
        stored: selected cells that had a result before.
        elsewhere: cells that another runner, or a lost dask worker, trained in the meantime.
        failed: the last event of cells without a result.
        diverged: selected cells that diverged in training.
        left: cells not selected because of the limit.
        unfit: selected cells that diverged at a tuning seed, so that their settings are not chosen.
        stuck: runs of which every candidate diverged or failed at a tuning seed.
        notes: lines that the user must see.
    """

    planned: int
    selected: int
    stored: int
    trained: int
    elsewhere: int
    failed: tuple[CellFinished, ...]
    diverged: int
    missing: int
    left: int
    interrupted: bool
    seconds: float
    notes: tuple[str, ...]
    unfit: int = 0
    stuck: int = 0

    @property
    def complete(self) -> bool:
        """Whether every selected cell ended well."""
        return not self.missing and not self.diverged and not self.stuck

    def after(self, tuning: Summary) -> Summary:
        """The outcome together with that of the tuning cells that were trained before."""
        counts = ("selected", "stored", "trained", "elsewhere", "missing", "left", "seconds", "failed", "notes")
        both = {name: getattr(tuning, name) + getattr(self, name) for name in counts}
        interrupted = tuning.interrupted or self.interrupted
        return replace(self, **both, unfit=tuning.diverged + tuning.unfit, interrupted=interrupted)

    def describe(self) -> str:
        """One line with all nonzero counts, and the time."""
        counts = {
            "stored before": self.stored,
            "trained": self.trained,
            "trained by another process": self.elsewhere,
            "failed": len(self.failed),
            "diverged": self.diverged,
            "diverged at a tuning seed": self.unfit,
            "without a result": max(0, self.missing - len(self.failed)),
            "skipped by --limit": self.left,
        }
        parts = ", ".join(f"{count} {what}" for what, count in counts.items() if count) or "none"
        passed = timedelta(seconds=round(self.seconds))
        return f"{self.selected} of {self.planned} runs selected: {parts}; {passed}"


def run_suite(
    missing: MissingRuns,
    store: Store,
    executor: Executor,
    observer: Observer | None = None,
    together: int = 1,
    *,
    keep_going: bool = False,
) -> Summary:
    """Trains the missing runs; starts nothing if there are none.

    Each method's first cell comes before the rest, and one at each target, so that what cannot be trained shows within
    seconds. If one of them raises an exception the run ends, unless it is to keep going.

    SIGINT and SIGTERM stop it: no new cell starts, all processes end, and published records stay. A cell that failed in
    an earlier run is tried again; a diverged one is not, since it would diverge again.

    If cells can train in one stack, a job may hold `together` of them.

    Raises:
        BenchError: one of the first cells raised an exception, and all processes have ended; or nothing can be trained
            or stored at all. Records stay.
    """
    first, rest = _first_jobs(make_jobs(missing.to_train, together), missing)
    trials = {key for job in first if not keep_going for key in job.keys}
    watcher = observer or Observer()
    started = time.monotonic()
    notes: list[str] = []
    ended: dict[str, CellFinished] = {}
    interrupt = Interrupt()
    if missing.to_train:
        with interrupt, contextlib.ExitStack() as ending:
            watcher.begin(missing)
            ending.callback(watcher.end)
            for event in ending.enter_context(contextlib.closing(_events([*first, *rest], store, executor, interrupt))):
                if isinstance(event, CellFinished) and event.raised and event.key in trials:
                    raise BenchError(_first_fault(event, missing.plan))
                watcher.see(event)
                if isinstance(event, CellFinished):
                    ended[event.key] = event
                elif isinstance(event, Noted):
                    notes.append(event.line)
    return _summary(missing, store, ended, notes, interrupted=interrupt.requested, seconds=time.monotonic() - started)


def _first_jobs(jobs: Sequence[Job], missing: MissingRuns) -> tuple[list[Job], list[Job]]:
    """The jobs with the first cell of a method or at a target of an experiment, and the rest, both in their order.

    A method, or a target, with a result has shown that it can be trained.
    """
    shown: set[tuple[str, str, str]] = set()
    parts: dict[str, set[tuple[str, str, str]]] = {}
    for cell in missing.plan.cells:
        here = parts.setdefault(cell.key, set())
        here |= {(cell.experiment, "method", cell.method), (cell.experiment, "target", cell.target)}
        if cell.key in missing.ended:
            shown |= here
    first: list[Job] = []
    rest: list[Job] = []
    for job in jobs:
        new = set[tuple[str, str, str]]().union(*(parts[key] for key in job.keys)) - shown
        (first if new else rest).append(job)
        shown |= new
    return first, rest


def _first_fault(event: CellFinished, plan: Plan) -> str:
    cell = next(cell for cell in plan.cells if cell.key == event.key)
    table = next(table for table in plan.experiments if table.name == cell.experiment)
    recipe = next(method.recipe for method in table.methods if method.name == cell.method)
    kept = f"; traceback in {event.traceback}" if event.traceback else ""
    return (
        f"{table.name}: the first run of {cell.method} ({recipe}), target {cell.target}, seed {cell.seed}, failed: "
        f"{event.message}{kept}; fix it and run again, or train the others with --keep-going"
    )


def _events(
    jobs: Sequence[Job],
    store: Store,
    executor: Executor,
    interrupt: Interrupt,
) -> Generator[Event, None, None]:
    yield from map(Noted, store.drain_warnings())
    yield from executor.run(jobs, store, interrupt)
    yield from map(Noted, store.drain_warnings())


def _summary(
    missing: MissingRuns,
    store: Store,
    ended: dict[str, CellFinished],
    notes: list[str],
    *,
    interrupted: bool,
    seconds: float,
) -> Summary:
    results = missing.ended | {key: event for key, event in ended.items() if event.status in RESULTS}
    results |= stored_results(store, ended.keys() - results.keys())  # another process may have succeeded
    selected = {cell.key for cell in missing.selected}
    return Summary(
        planned=len({cell.key for cell in missing.plan.cells}),
        selected=len(selected),
        stored=missing.stored,
        trained=sum(results[key].trained for key in ended.keys() & results.keys()),
        elsewhere=sum(not results[key].trained for key in ended.keys() & results.keys()),
        failed=tuple(event for event in ended.values() if event.key not in results),
        diverged=sum(results[key].status == "diverged" for key in selected & results.keys()),
        missing=len(selected - results.keys()),
        left=missing.left,
        interrupted=interrupted,
        seconds=seconds,
        notes=tuple(notes),
    )
