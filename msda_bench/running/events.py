"""What an executor tells while it works."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from msda_bench.store.record import Outcome, Record, Status


@dataclass(frozen=True)
class JobStarted:
    """A job was handed to whoever trains it."""

    keys: tuple[str, ...]


@dataclass(frozen=True)
class CellFinished:
    """A cell's record is in the store.

    Attributes:
        key: the cell's key.
        status: the record's.
        outcome: the record's.
        message: the record's.
        trained: False when it was found in the store: another runner, or a dask worker now lost, had been faster.
        traceback: the failure's file, where it keeps a traceback.
    """

    key: str
    status: Status
    outcome: Outcome | None = None
    message: str | None = None
    trained: bool = True
    traceback: Path | None = None

    @classmethod
    def of(cls, record: Record, *, trained: bool = True, file: Path | None = None) -> CellFinished:
        """What is told of a record, and of the file that a failure is kept in."""
        traceback = file if "traceback" in record.provenance else None
        return cls(record.key, record.status, record.outcome, record.message, trained, traceback)


@dataclass(frozen=True)
class Noted:
    """A line on something that must not pass in silence: a lost process, a conflict, a damaged record."""

    line: str


Event: TypeAlias = JobStarted | CellFinished | Noted
