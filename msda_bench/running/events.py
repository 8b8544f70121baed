"""Events that executors report, and the observers of a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from msda_bench.store.record import Record, Status

if TYPE_CHECKING:
    from msda_bench.running.survey import Survey


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

    @classmethod
    def of(cls, record: Record, *, trained: bool = True, file: Path | None = None) -> CellFinished:
        """The event of a record; `file` is that of an exception's failure."""
        traceback = file if "traceback" in record.provenance else None
        raised = file is not None and record.status == "failed"
        return cls(record.key, record.status, record.message, trained, traceback, raised)


@dataclass(frozen=True)
class Noted:
    """A line that the user must see: a lost process, a conflict, a damaged record."""

    line: str


Event: TypeAlias = JobStarted | CellFinished | Noted


class Observer:
    """Watches a run: `begin`, any number of `see`, `end`, always in the same thread. The base class does nothing."""

    def begin(self, survey: Survey) -> None:
        """Called when training begins."""

    def see(self, event: Event) -> None:
        """Called for each event."""

    def end(self) -> None:
        """Called when training ended, for whatever reason."""
