"""What came of a run."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from msda_bench.running.events import CellFinished
from msda_bench.store.record import Record

_COUNTS = ("complete", "planned", "selected", "stored", "trained", "found", "diverged", "missing", "left", "seconds")


@dataclass(frozen=True)
class Summary:
    """What came of a run; cells are counted once, however many methods share them.

    Attributes:
        planned: cells of the plan.
        selected: cells that the run was to bring to an end.
        stored: of these, cells that had a result before.
        trained: cells that this run gave a result.
        found: cells that another runner, or a lost dask worker, gave a result meanwhile.
        failed: the last event of cells that gave none.
        diverged: selected cells whose result is that training diverged.
        missing: selected cells without a result.
        left: cells not selected because of the limit.
        interrupted: whether it was stopped.
        seconds: how long training took in all.
        notes: lines that a user must see.
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
            "trained by another process": self.found,
            "failed": len(self.failed),
            "diverged": self.diverged,
            "without a result": self.missing,
            "skipped by --limit": self.left,
        }
        parts = ", ".join(f"{count} {what}" for what, count in counts.items() if count) or "none"
        passed = timedelta(seconds=round(self.seconds))
        return f"{self.selected} of {self.planned} cells selected: {parts}; {passed}"

    def to_json(self) -> dict[str, Any]:
        """The counts, the cells that gave no result, and the notes, as plain JSON values, for `run --json`."""
        failed = [
            {
                "key": one.key,
                "status": one.status,
                "message": one.message,
                "traceback": None if one.traceback is None else str(one.traceback),
            }
            for one in self.failed
        ]
        return {name: getattr(self, name) for name in _COUNTS} | {"failed": failed, "notes": list(self.notes)}
