"""The measurements of one session."""

from __future__ import annotations

from dataclasses import dataclass, field

from benchmarks.clocks import Measured
from benchmarks.roofline import Occurrence


@dataclass
class Results:
    """What was measured, by table and row, in the order of measuring.

    Attributes:
        tables: of each table the measurement of each row.
        occurrence: how much of the vocabulary an Amazon-shaped step touches; None where it was not counted.
    """

    tables: dict[str, dict[str, Measured]] = field(default_factory=dict)
    occurrence: Occurrence | None = None

    def add(self, table: str, row: str, measured: Measured) -> None:
        """Keeps one measurement."""
        self.tables.setdefault(table, {})[row] = measured

    def get(self, table: str, row: str) -> Measured | None:
        """A measurement, if it was made."""
        return self.tables.get(table, {}).get(row)
