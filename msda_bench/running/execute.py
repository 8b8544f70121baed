"""Trains a job in this process and publishes what comes out, so that no record is lost on its way to another."""

from __future__ import annotations

import pkgutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from msda_bench.errors import pass_interrupt
from msda_bench.running.events import CellFinished, Event, Noted
from msda_bench.running.failure import failure_of
from msda_bench.running.jobs import Job
from msda_bench.store.codec import BadRecordError
from msda_bench.store.record import Record
from msda_bench.store.store import Store
from msda_bench.suite.cell import Cell

Train: TypeAlias = Callable[[Sequence[Cell]], Iterable[Record]]
"""Cells to their records, each ok or diverged, yielded as soon as they are known; raises on any other fault."""

ENGINE = "msda_bench.running.execute:engine"


def engine(device: str, stack: int | None) -> Train:
    """The training core, over the installed plugins and the data of this machine; see `Trainer`."""
    from msda_bench.data.files import LocalFiles
    from msda_bench.engine.train import Trainer
    from msda_bench.plugins import discover

    return Trainer(discover(), LocalFiles(), device, stack).train


def load_trainer(path: str, device: str, stack: int | None) -> Train:
    """The function that `module:name`, called with the device and the stack size, returns.

    A process gets the path and not the function, so that torch, plugins and data are loaded where they are used.
    """
    train: Train = pkgutil.resolve_name(path)(device, stack)
    return train


class JobRunner:
    """Runs jobs one after the other.

    Args:
        train: trains cells.
        store: where the records go.
    """

    def __init__(self, train: Train, store: Store) -> None:
        self._train = train
        self._store = store
        self._noted: set[str] = set()

    def run(self, job: Job) -> Iterator[Event]:
        """Trains the cells that have no result yet; each is published before it is reported.

        A job that fails is tried again in halves, so that only the cell at fault gets a record of failure.

        Raises:
            StoreError: a record cannot be read or written.
        """
        missing = set(job.keys)
        for key, record in self._store.results(job.keys).items():
            missing.discard(key)
            yield CellFinished.of(record, trained=False)
        if missing:
            yield from self._run(job.only(missing))
        yield from map(Noted, self._store.take_notes())

    def _run(self, job: Job) -> Iterator[Event]:
        started = time.perf_counter()
        left = dict(zip(job.keys, job.cells, strict=True))
        fault = None
        records = self._records(job)
        while left and fault is None:
            try:
                record = next(records)
                cell = left.pop(record.key)
            except BaseException as error:  # noqa: BLE001 - a stranger's component may raise anything
                pass_interrupt(error)
                key = next(iter(left))
                fault = failure_of(key, left[key], error, time.perf_counter() - started)
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
            for half in job.only(set(left)).halves():
                yield from self._run(half)

    def _records(self, job: Job) -> Iterator[Record]:
        due = set(job.keys)
        for record in self._train(job.cells):
            if record.key not in due:
                break
            due.remove(record.key)
            yield record
        raise RuntimeError("the training core returned records of other cells")

    def _notes(self, record: Record) -> Iterator[Noted]:
        """Lines on how a record came about that a user must see, each once."""
        for line in _lines_on(record):
            if line not in self._noted:
                self._noted.add(line)
                yield Noted(line)

    def _publish(self, record: Record) -> CellFinished:
        if not record.is_result:
            return CellFinished.of(record, file=self._store.keep_failure(record))
        published = self._store.publish(record)
        kept = record if published else self._store.read(record.key)
        return CellFinished.of(kept or record)


def _lines_on(record: Record) -> Iterator[str]:
    """Where cells trained in another way than they might have, and where a component changed the process."""
    note, changed = record.provenance.get("stack_note"), record.provenance.get("put_back")
    if note is not None:
        size = record.provenance["stack"]
        trained = "alone" if size == 1 else f"in stacks of {size}"
        yield f"cells train {trained}, which is slower: {note}"
    if changed:
        parts = [record.cell[kind] for kind in ("dataset", "backbone", "scheme", "discrepancy", "aggregator")]
        named = ", ".join(str(part["name"]) for part in [*parts, *record.cell["validators"]] if part)
        yield f"a component ({named}) changed {' and '.join(changed)}; put back before the next cell"
