"""What there is to do: the selected cells, those with a result, those to train."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msda_bench.store.record import Record
from msda_bench.store.store import Store
from msda_bench.suite.cell import Cell
from msda_bench.suite.plan import Plan, PlannedCell

if TYPE_CHECKING:  # it needs plugins, and so torch, which a process that only schedules does without
    from msda_bench.suite.expand import Expansion


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
