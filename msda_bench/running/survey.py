"""What there is to do: the selected cells, those with a result, those to train."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from msda_bench.store.record import Record
from msda_bench.store.store import Store
from msda_bench.suite.cell import Cell
from msda_bench.suite.plan import Plan, PlannedCell

if TYPE_CHECKING:  # it needs plugins, and so torch, which a process that only schedules does without
    from msda_bench.suite.expand import Expansion

SURVEY_SCHEMA = 1
"""Version of the layout of `run --dry-run --json`."""


@dataclass(frozen=True)
class Survey:
    """The state of a result folder beside a plan.

    Attributes:
        plan: all that the suite asks for.
        selected: what this run shall bring to an end, in the plan's order.
        records: the results of all the plan's cells that have one, by key.
        missing: the selected cells to train, by key, in the plan's order.
        left: cells that were selected and missing, but beyond the limit.
    """

    plan: Plan
    selected: tuple[PlannedCell, ...]
    records: dict[str, Record]
    missing: dict[str, Cell]
    left: int

    @property
    def stored(self) -> int:
        """Selected cells that have a result."""
        return len({cell.key for cell in self.selected} & self.records.keys())


def survey(
    expansion: Expansion,
    store: Store | None = None,
    chosen: Iterable[PlannedCell] | None = None,
    limit: int | None = None,
) -> Survey:
    """Compares what a suite asks for with a result folder.

    Args:
        expansion: what the suite asks for.
        store: the result folder; None where there is none yet.
        chosen: which of the plan's cells to look at; None for all.
        limit: how many of the missing ones to train at most; the others do not count as selected.

    Raises:
        StoreError: a record cannot be read.
    """
    plan, cells = expansion.plan, expansion.cells
    records = {} if store is None else store.results(cells)
    wanted = plan.cells if chosen is None else tuple(chosen)
    absent = list(dict.fromkeys(cell.key for cell in wanted if cell.key not in records))
    missing = {key: cells[key] for key in absent[:limit]}
    selected = tuple(cell for cell in wanted if cell.key in records or cell.key in missing)
    return Survey(plan, selected, records, missing, len(absent) - len(missing))


def print_survey(survey: Survey, folder: Path) -> None:
    """Prints, for each method, how many of its selected cells are stored and how many would be trained."""
    table = Table("experiment", "method", box=None, pad_edge=False)
    table.add_column("stored", justify="right")
    table.add_column("to train", justify="right")
    for experiment, method, stored, missing in _rows(survey):
        table.add_row(Text(experiment), Text(method), str(stored), str(missing))
    console = Console(soft_wrap=True)
    console.print(table)
    left_out = len({cell.key for cell in survey.selected if cell.left_out is not None} & survey.missing.keys())
    of_them = f" ({left_out} of them to leave one source out)" if left_out else ""
    beyond = f", {survey.left} skipped by --limit" if survey.left else ""
    line = (
        f"{folder}: {survey.stored} cells stored, {len(survey.missing)} to train{of_them}{beyond}; nothing was changed"
    )
    console.print(Text(line))


def survey_json(survey: Survey, folder: Path) -> dict[str, Any]:
    """The same as plain JSON values."""
    return {
        "schema": SURVEY_SCHEMA,
        "command": "run",
        "dry_run": True,
        "folder": str(folder),
        "suite": survey.plan.suite,
        "stored": survey.stored,
        "to_train": len(survey.missing),
        "left": survey.left,
        "methods": [
            {"experiment": experiment, "method": method, "stored": stored, "to_train": missing}
            for experiment, method, stored, missing in _rows(survey)
        ],
    }


def _rows(survey: Survey) -> Iterator[tuple[str, str, int, int]]:
    """Experiment, method, cells stored, cells to train."""
    missing = Counter((cell.experiment, cell.method) for cell in survey.selected if cell.key in survey.missing)
    selected = Counter((cell.experiment, cell.method) for cell in survey.selected)
    for row, count in selected.items():
        yield *row, count - missing[row], missing[row]
