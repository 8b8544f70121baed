"""Compares a plan with a result folder: the selected cells, those with a result, those to train."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msda_bench.errors import BenchError
from msda_bench.running.events import CellFinished
from msda_bench.store.store import Store
from msda_bench.suite.cell import Cell
from msda_bench.suite.plan import Plan, PlannedCell

if TYPE_CHECKING:  # imports plugins and so torch, which a scheduling process does not need
    from msda_bench.suite.expand import Expansion

_SHARD = re.compile(r"([0-9]{1,6})/([0-9]{1,6})")


@dataclass(frozen=True)
class Survey:
    """The state of a result folder compared with a plan.

    Attributes:
        plan: everything that the suite asks for.
        selected: the cells that this run is to complete, in the plan's order.
        ended: the results of all the plan's cells that have one, by key.
        missing: the selected cells to train, by key, in the plan's order.
        left: cells that were selected and missing, but exceed the limit.
    """

    plan: Plan
    selected: tuple[PlannedCell, ...]
    ended: dict[str, CellFinished]
    missing: dict[str, Cell]
    left: int

    @property
    def stored(self) -> int:
        """Selected cells that have a result."""
        return len({cell.key for cell in self.selected} & self.ended.keys())


def survey(
    expansion: Expansion,
    store: Store | None = None,
    chosen: Iterable[PlannedCell] | None = None,
    limit: int | None = None,
) -> Survey:
    """Compares the plan of a suite, or the selected part of it, with a result folder, if there is one.

    Missing cells beyond the limit are not trained and do not count as selected.

    Raises:
        StoreError: a record cannot be read.
    """
    plan, cells = expansion.plan, expansion.cells
    ended = {} if store is None else _ended(store, cells)
    wanted = plan.cells if chosen is None else tuple(chosen)
    absent = list(dict.fromkeys(cell.key for cell in wanted if cell.key not in ended))
    missing = {key: cells[key] for key in absent[:limit]}
    selected = tuple(cell for cell in wanted if cell.key in ended or cell.key in missing)
    return Survey(plan, selected, ended, missing, len(absent) - len(missing))


def _ended(store: Store, keys: Iterable[str]) -> dict[str, CellFinished]:
    found = ((key, store.read(key, curves=False)) for key in keys)  # one at a time, to save memory
    return {key: CellFinished.of(record, trained=False) for key, record in found if record is not None}


def shard_of(cells: Iterable[PlannedCell], text: str) -> tuple[PlannedCell, ...]:
    """Part I of N, written `I/N`, in the same order; for machines that do not communicate.

    The parts are disjoint and cover everything: every N-th cell in the order of the keys, stored or not. Their sizes
    differ by one at most, and since keys are hashes, each part has cells of every method.

    Raises:
        BenchError: the text is not a valid part.
    """
    found = _SHARD.fullmatch(text)
    if found is None or not int(found[1]) < int(found[2]):
        raise BenchError(f"--shard {text!r}: write I/N, part I of N, counted from 0, such as 0/4 to 3/4")
    planned = tuple(cells)
    mine = set(sorted({cell.key for cell in planned})[int(found[1]) :: int(found[2])])
    return tuple(cell for cell in planned if cell.key in mine)
