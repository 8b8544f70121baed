"""Executors, and what they train a job with: records are published at once, so that none is lost on its way."""

from __future__ import annotations

import contextlib
import pkgutil
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

from msda_bench.component.base import Component, component
from msda_bench.errors import BenchError, Interrupted
from msda_bench.plugin_errors import cause_of, plugin_errors
from msda_bench.running.jobs import CellFinished, Event, Job, JobStarted, Noted, failure_of
from msda_bench.store.codec import BadRecordError
from msda_bench.store.record import RESULTS, Record
from msda_bench.store.store import Store
from msda_bench.suite.run_spec import RunSpec

if TYPE_CHECKING:
    from msda_bench.plugins import Registry

Train: TypeAlias = Callable[[Sequence[RunSpec]], Iterable[Record]]
"""Cells to their records, each ok or diverged, yielded as soon as they are trained; raises on any other fault."""


def engine(device: str, stack: int | None) -> Train:
    """The training core, over the installed plugins and the data of this machine; see `Trainer`."""
    from msda_bench.data.files import LocalFiles
    from msda_bench.engine.train import Trainer
    from msda_bench.plugins import discover

    return Trainer(discover(), LocalFiles(), device, stack).train


@dataclass(frozen=True)
class Setup:
    """Loads the training core, in the process that trains.

    A process gets the name of a function rather than the function, so that torch, plugins and data are loaded there.

    Attributes:
        device: "cpu" or "cuda".
        stack: how many cells may train as one on a GPU; None for as many as its memory holds.
        trainer: `module:name` of the function that is called with both.
    """

    device: str
    stack: int | None = None
    trainer: str = "msda_bench.running.execute:engine"

    def load(self) -> Train:
        """Loads it."""
        train: Train = pkgutil.resolve_name(self.trainer)(self.device, self.stack)
        return train


@dataclass(frozen=True, kw_only=True)
class Executor(Component, ABC):
    """Trains jobs; subclasses choose where and in which order.

    Attributes:
        has_processes: whether it starts processes, which can be ended; if not, cells have no timeout.
        has_scheduler: whether it can train on other machines, by way of a scheduler.
        setup: loads the training core.
        workers: how many processes, at least 1, where the executor starts any on this machine.
        timeout: seconds that a cell may take; a job of several may take that for each. None for no limit.
        scheduler: the address of the scheduler; None for this machine.
    """

    kind: ClassVar[str] = "executor"
    has_processes: ClassVar[bool] = True
    has_scheduler: ClassVar[bool] = False

    setup: Setup
    workers: int = 1
    timeout: float | None = None
    scheduler: str | None = None

    @classmethod
    def check(cls, scheduler: str | None) -> None:
        """Called before anything else is done.

        Raises:
            BenchError: a package is missing, or the address cannot be one.
        """

    @abstractmethod
    def run(self, jobs: Iterable[Job], store: Store, interrupt: Interrupt) -> Iterator[Event]:
        """Starts the jobs and reports events until all are done or an interrupt is requested.

        Every cell ends with one `CellFinished`, reported after its record is in the store. When the iterator is closed
        or ends, no process that it started is left running.

        Raises:
            BenchError: nothing can be trained or stored at all.
        """


def executors() -> Registry:
    """All installed executors, in an entry-point group of their own; see `discover`."""
    from msda_bench.plugins import discover

    return discover(None, "msda_bench.executors", {"msda_executors": Executor})


@component
class InlineExecutor(Executor):
    """The process of the command itself, for debuggers; a crash ends the run, and a rerun resumes after its cell."""

    name = "inline"
    has_processes = False

    def run(self, jobs: Iterable[Job], store: Store, interrupt: Interrupt) -> Iterator[Event]:
        """See `Executor`."""
        runner = JobRunner(self.setup.load(), store)
        for job in jobs:
            if interrupt.requested:
                return
            try:
                with interrupt.raising():
                    events = list(runner.run(job))
            except Interrupted:
                return
            yield from events


class JobRunner:
    """Runs jobs one after the other: `train` makes the records, `store` keeps them."""

    def __init__(self, train: Train, store: Store) -> None:
        self._train = train
        self._store = store
        self._noted: set[str] = set()

    def run(self, job: Job) -> Iterator[Event]:
        """Announces the job and trains its cells without a result; each is published before it is reported.

        A job that fails is tried again in halves, so that only the failing cell gets a record of failure.

        Raises:
            StoreError: a record cannot be read or written.
        """
        yield JobStarted(job.keys)
        left, stored = stored_of(job, self._store, trained=False)
        yield from stored
        if left.keys:
            yield from self._run(left)
        yield from map(Noted, self._store.drain_warnings())

    def _run(self, job: Job) -> Iterator[Event]:
        started = time.perf_counter()
        left = dict(zip(job.keys, job.cells, strict=True))
        fault = None
        records = self._records(job, left)
        while left and fault is None:
            try:
                with plugin_errors(()):
                    record = next(records)
                    cell = left.pop(record.key)
            except BenchError as error:
                key = next(iter(left))
                fault = failure_of(key, left[key], cause_of(error), time.perf_counter() - started)
                continue
            yield from self._notes(record)
            try:
                yield self._publish(record)
            except BadRecordError as bad:
                yield self._publish(failure_of(record.key, cell, bad, time.perf_counter() - started))
        # Outside the handler, whose traceback would keep the lost attempt's tensors alive.
        if fault is not None and len(left) == 1:
            yield self._publish(fault)
        elif fault is not None:
            for half in job.only(left).halves():
                yield from self._run(half)

    def _records(self, job: Job, due: Container[str]) -> Iterator[Record]:
        for record in self._train(job.cells):
            if record.key not in due:
                break
            yield record
        raise RuntimeError("the training core returned records of other runs")

    def _notes(self, record: Record) -> Iterator[Noted]:
        """Notes, each once: classes on one side alone, training slower than could be, a process that was changed."""
        where = record.provenance
        lines = [*where.get("class_notes", ())]
        if where.get("stack_note") is not None:
            trained = "alone" if where["stack"] == 1 else f"in stacks of {where['stack']}"
            lines.append(f"runs train {trained}, which is slower: {where['stack_note']}")
        if where.get("put_back"):
            parts = [record.cell[kind] for kind in ("dataset", "backbone", "scheme", "discrepancy", "aggregator")]
            given = [part for part in [*parts, *record.cell["validators"]] if part]
            # Tests hold those of msda-bench itself to changing nothing.
            suspects = [part for part in given if part.get("distribution") != "msda-bench"] or given
            named = ", ".join(str(part["name"]) for part in suspects)
            lines.append(
                f"a component ({named}) changed {' and '.join(where['put_back'])}; put back before the next run"
            )
        yield from (Noted(line) for line in lines if line not in self._noted)
        self._noted.update(lines)

    def _publish(self, record: Record) -> CellFinished:
        file = self._store.publish(record)
        traceback = file if "traceback" in record.provenance and record.status not in RESULTS else None
        raised = record.status == "failed"
        return CellFinished(record.key, record.status, record.message, traceback=traceback, raised=raised)


def stored_of(job: Job, store: Store, *, trained: bool = True) -> tuple[Job, list[CellFinished]]:
    """The part of a job without results, and the events of the rest."""
    stored = stored_results(store, job.keys, trained=trained)
    return job.only([key for key in job.keys if key not in stored]), list(stored.values())


def stored_results(store: Store, keys: Iterable[str], *, trained: bool = False) -> dict[str, CellFinished]:
    """The cells that have a result now, by key; raises a StoreError if they cannot be read."""
    results = store.refresh().results
    stored = (results[key] for key in keys if key in results)
    return {one.key: CellFinished(one.key, one.status, one.message, trained) for one in stored}


class Interrupt:
    """Within the block, SIGINT and SIGTERM set `requested`; repeated signals do not disturb the cleaning up.

    Signals reach only the main thread; entering it elsewhere has no effect.

    Args:
        numbers: the signals, if not these two.
    """

    def __init__(self, *numbers: signal.Signals) -> None:
        self._numbers = numbers or (signal.SIGINT, signal.SIGTERM)
        self.requested = False
        self._raise = False
        self._former: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in self._numbers:
                self._former[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)
        self._former.clear()

    @contextlib.contextmanager
    def raising(self) -> Iterator[None]:
        """Within the block a signal raises Interrupted at once, for work that does not check the flag."""
        if self.requested:
            raise Interrupted
        self._raise = True
        try:
            yield
        finally:
            self._raise = False

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        self.requested = True
        if self._raise:
            self._raise = False
            raise Interrupted
