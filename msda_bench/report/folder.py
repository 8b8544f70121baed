"""A result folder as it was read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from msda_bench.report.remarks import annotated
from msda_bench.store import Record, Store
from msda_bench.store.faults import Faults, find_faults
from msda_bench.suite.plan import Plan


@dataclass(frozen=True)
class Folder:
    """A result folder.

    Attributes:
        path: where it is.
        plan: what was asked for.
        records: by key; runs whose key is not there are missing.
        faults: cells whose records are damaged or in conflict.
        lines: a line for each damaged record that was met, and for each result beside another.
    """

    path: Path
    plan: Plan
    records: Mapping[str, Record]
    faults: Faults
    lines: tuple[str, ...]

    @property
    def told_plan(self) -> Plan:
        """The plan, with notes on what its records tell."""
        return annotated(self.plan, self.records, self.faults)


def read(path: Path, *, repair: bool = True) -> Folder:
    """Reads a result folder.

    Args:
        path: the folder.
        repair: whether damaged records are set aside; otherwise nothing in the folder is touched.

    Raises:
        StoreError: it is no result folder, or cannot be read.
    """
    store = Store(path, repair=repair)
    plan = store.read_plan()
    keys = [cell.key for cell in plan.cells]
    records = store.records(keys)
    lines = (*store.take_notes(), *store.conflicting(keys))
    return Folder(path, plan, records, find_faults(store, keys, records), lines)
