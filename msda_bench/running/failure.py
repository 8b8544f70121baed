"""Cells without a result: their records, and retries."""

from __future__ import annotations

import sys
from dataclasses import replace

from msda_bench.blame import describe_with_place, packages_of, trace_of
from msda_bench.errors import BenchError, message_of, printable
from msda_bench.running.events import CellFinished, Event, Noted
from msda_bench.running.jobs import Job
from msda_bench.store.record import Record, Status
from msda_bench.store.store import Store
from msda_bench.suite.cell import Cell

ATTEMPTS = 2
"""How often a cell whose process is lost is started."""


def failure_of(key: str, cell: Cell, error: BaseException, seconds: float) -> Record:
    """The record of a cell whose training raised; for a component's fault it names the line and keeps the traceback."""
    if isinstance(error, BenchError):
        return _failure(key, cell, "failed", message_of(error), seconds)
    status: Status = "oom" if _out_of_memory(error) else "failed"
    # The place comes first, so that a table that shortens the message still shows it.
    message = describe_with_place(error, packages_of(ref.distribution for ref in cell.refs))
    return replace(_failure(key, cell, status, message, seconds), provenance={"traceback": trace_of(error)})


def retry(
    job: Job, why: str, store: Store, *, status: Status = "failed", seconds: float = 0.0
) -> tuple[tuple[Job, ...], Event]:
    """Decides what to do with a job whose process was lost or took too long.

    Only cells without a result remain in the job; `why` is such as "its process exited with code 1".

    Returns:
        The jobs to start (two halves, the cell once more, or none) and the event to report. A cell is given up, with a
        record of that status, after its last attempt or its first timeout.
    """
    if len(job.keys) > 1:
        return tuple(job.halves()), Noted(f"{len(job.keys)} cells run again in halves, because {why}")
    if status == "failed" and job.attempt < ATTEMPTS:
        again = replace(job, attempt=job.attempt + 1)
        return (again,), Noted(f"cell {job.keys[0][:12]} runs again, because {why}")
    count = f" ({job.attempt} attempts)" if job.attempt > 1 else ""
    record = _failure(job.keys[0], job.cells[0], status, f"{why}{count}", seconds)
    store.publish(record)
    return (), CellFinished.of(record)


def _failure(key: str, cell: Cell, status: Status, message: str, seconds: float) -> Record:
    return Record(key, cell.to_json(), status, message=printable(message), timing={"attempt": round(seconds, 4)})


def _out_of_memory(error: BaseException) -> bool:
    torch = sys.modules.get("torch")  # without torch its exception cannot have been raised
    kinds = (MemoryError,) if torch is None else (MemoryError, torch.OutOfMemoryError)
    return isinstance(error, kinds) or (isinstance(error, RuntimeError) and "DefaultCPUAllocator" in message_of(error))
