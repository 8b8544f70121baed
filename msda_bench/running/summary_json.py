"""What came of a run, as plain JSON values, for `run --json`."""

from __future__ import annotations

from typing import Any

from msda_bench.running.events import CellFinished
from msda_bench.running.runner import Summary


def summary_json(summary: Summary) -> dict[str, Any]:
    """The counts of `Summary`, the cells that gave no result, and what had to be told meanwhile."""
    return {
        "complete": summary.complete,
        "planned": summary.planned,
        "selected": summary.selected,
        "stored": summary.stored,
        "trained": summary.trained,
        "found": summary.found,
        "failed": [_failed(one) for one in summary.failed],
        "diverged": summary.diverged,
        "missing": summary.missing,
        "left": summary.left,
        "seconds": summary.seconds,
        "notes": list(summary.notes),
    }


def _failed(one: CellFinished) -> dict[str, Any]:
    kept = None if one.traceback is None else str(one.traceback)
    return {"key": one.key, "status": one.status, "message": one.message, "traceback": kept}
