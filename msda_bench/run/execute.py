"""Trains a job in this process and publishes what comes out, so that no record is lost on its way to another."""

from __future__ import annotations

import time
from collections.abc import Iterator

from msda_bench.run.events import CellFinished, Event, Noted
from msda_bench.run.failure import failure_of
from msda_bench.run.jobs import Job
from msda_bench.run.trainer import Train
from msda_bench.store.codec import BadRecordError
from msda_bench.store.record import Record
from msda_bench.store.store import Store


class JobRunner:
    """Runs jobs one after the other.

    Args:
        train: trains cells.
        store: where the records go.
    """

    def __init__(self, train: Train, store: Store) -> None:
        self._train = train
        self._store = store

    def run(self, job: Job) -> Iterator[Event]:
        """Trains the cells that have no result yet; each is published before it is told.

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
        try:
            records = self._train(job.cells)
            _check(job, records)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a stranger's component may raise anything
            record = failure_of(job.keys[0], job.cells[0], error, time.perf_counter() - started)
        else:
            for cell, record in zip(job.cells, records, strict=True):
                try:
                    yield self._publish(record)
                except BadRecordError as bad:
                    yield self._publish(failure_of(record.key, cell, bad, time.perf_counter() - started))
            return
        # Outside the handler, whose traceback would keep the lost attempt's tensors alive.
        if len(job.keys) == 1:
            yield self._publish(record)
            return
        for half in job.halves():
            yield from self._run(half)

    def _publish(self, record: Record) -> CellFinished:
        published = self._store.publish(record)
        kept = record if published else self._store.read(record.key)
        return CellFinished.of(kept or record)


def _check(job: Job, records: list[Record]) -> None:
    if [record.key for record in records] != list(job.keys):
        raise RuntimeError("the training core returned records of other cells")
