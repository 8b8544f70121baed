"""Jobs, the unit of scheduling; what executors report of them; and what becomes of cells without a result."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from msda_bench.errors import BenchError, PluginError, message_of, printable
from msda_bench.plugin_errors import describe_with_place, packages_of, trace_of
from msda_bench.store.record import Record, Status
from msda_bench.store.store import Store
from msda_bench.suite.run_spec import RunSpec, canonical_json


@dataclass(frozen=True)
class Job:
    """Cells to train together, by their keys, which differ; `attempt` counts the processes that have received it."""

    keys: tuple[str, ...]
    cells: tuple[RunSpec, ...]
    attempt: int = 1

    def only(self, keys: Collection[str]) -> Job:
        """The job with only these of its cells."""
        kept = {key: cell for key, cell in zip(self.keys, self.cells, strict=True) if key in keys}
        return replace(self, keys=tuple(kept), cells=tuple(kept.values()))

    def halves(self) -> Iterator[Job]:
        """Two jobs with half of the cells each, both at their first attempt."""
        middle = len(self.keys) // 2
        yield Job(self.keys[:middle], self.cells[:middle])
        yield Job(self.keys[middle:], self.cells[middle:])


def make_jobs(cells: Mapping[str, RunSpec], most: int = 1) -> list[Job]:
    """Jobs of cells, by key, that may be trained together, with at most `most` cells each.

    Jobs of one cell, for a CPU: cells with the same split, whose data are prepared once, follow each other. Jobs of
    several, for a GPU: their cells differ only in seed, domains and numbers; the engine decides which of them to stack.
    """
    alike = _split if most == 1 else _family
    groups: dict[str, list[str]] = {}
    for key, cell in cells.items():
        groups.setdefault(alike(cell), []).append(key)
    jobs = []
    for keys in groups.values():
        for start in range(0, len(keys), most):
            share = tuple(keys[start : start + most])
            jobs.append(Job(share, tuple(cells[key] for key in share)))
    return jobs


def _split(cell: RunSpec) -> str:
    dataset = cell.dataset
    return canonical_json([dataset.name, dataset.params, cell.fingerprint, cell.target, cell.seed])


def _family(cell: RunSpec) -> str:
    plain = cell.to_json()
    for name in ("seed", "target", "sources", "mu"):
        del plain[name]
    for owner in ("aggregator", "scheme"):
        if plain[owner] is not None:
            del plain[owner]["params"]
    return canonical_json(plain)


@dataclass(frozen=True)
class JobStarted:
    """A job was handed to a worker."""

    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CellFinished:
    """A cell's record is in the store.

    Attributes:
        key: the cell's key.
        status: the record's.
        message: the record's.
        trained: False if it was found in the store: another runner, or a dask worker now lost, had trained it.
        traceback: the failure's file, if it holds a traceback.
        raised: True if the training raised an exception, so that it would again; False if its process was lost.
    """

    key: str
    status: Status
    message: str | None = None
    trained: bool = True
    traceback: Path | None = None
    raised: bool = False


@dataclass(frozen=True)
class Noted:
    """A line that the user must see: a lost process, a conflict, a damaged record."""

    line: str


Event: TypeAlias = JobStarted | CellFinished | Noted


ATTEMPTS = 2
"""How often a cell whose process is lost is started."""


def failure_of(key: str, cell: RunSpec, error: BaseException, seconds: float) -> Record:
    """The record of a cell whose training raised; for a component's fault it names the line and keeps the traceback."""
    if isinstance(error, BenchError):
        failed = _failure(key, cell, "failed", message_of(error), seconds)
        if isinstance(error, PluginError) and error.__cause__ is not None:
            return replace(failed, provenance={"traceback": trace_of(error)})
        return failed
    status: Status = "oom" if _out_of_memory(error) else "failed"
    # The place comes first, so that a table that shortens the message still shows it.
    message = describe_with_place(error, packages_of(spec.distribution for spec in cell.components))
    failed = _failure(key, cell, status, message, seconds)
    return replace(failed, provenance={"traceback": trace_of(error)})


def retry(
    job: Job,
    why: str,
    store: Store,
    *,
    status: Status = "failed",
    seconds: float = 0.0,
) -> tuple[tuple[Job, ...], Event]:
    """Decides what to do with a job whose process was lost or took too long.

    Only cells without a result remain in the job; `why` is such as "its process exited with code 1".

    Returns:
        The jobs to start (two halves, the cell once more, or none) and the event to report. A cell is given up, with a
        record of that status, after its last attempt or its first timeout.
    """
    if len(job.keys) > 1:
        return tuple(job.halves()), Noted(f"{len(job.keys)} runs start again in halves, because {why}")
    if status == "failed" and job.attempt < ATTEMPTS:
        again = replace(job, attempt=job.attempt + 1)
        return (again,), Noted(f"run {job.keys[0][:12]} starts again, because {why}")
    count = f" ({job.attempt} attempts)" if job.attempt > 1 else ""
    record = _failure(job.keys[0], job.cells[0], status, f"{why}{count}", seconds)
    store.publish(record)
    return (), CellFinished(record.key, record.status, record.message)


def _failure(key: str, cell: RunSpec, status: Status, message: str, seconds: float) -> Record:
    return Record(key, cell.to_json(), status, message=printable(message), timing={"attempt": round(seconds, 4)})


def _out_of_memory(error: BaseException) -> bool:
    if isinstance(error, MemoryError):
        return True
    torch = sys.modules.get("torch")  # without torch its exception cannot have been raised
    if torch is not None and isinstance(error, torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and "DefaultCPUAllocator" in message_of(error)
