"""The measurements of one session."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from benchmarks.clocks import Measured
from benchmarks.roofline import Occurrence
from benchmarks.steps import Counted
from msda_bench.engine.graph import WARM

ENGINE, REFERENCE = "engine, DARN", "reference, DARN"
"""Rows of the tables of training."""
AS_SCRIPT = "reference, one process of two threads"
TWO_REFERENCES = "reference, two processes of one thread"
TWO_ENGINES = "engine, two workers of one thread"
"""Rows of the tables of two cores."""
SHAPES = {"amazon": "Amazon-shaped", "digits": "digits-shaped", "fonts": "fonts, a small network"}
"""What the work is called in the tables."""


@dataclass
class Results:
    """What was measured, by table and row, in the order of measuring.

    Attributes:
        device: "cpu" or "cuda".
        tables: of each table the measurement of each row.
        peaks: bytes, by work and who did it.
        folders: bytes, by row of the table "folder".
        operations: of each method a step's, alone and stacked on vectors, and alone and stacked on images.
        occurrence: how much of the vocabulary an Amazon-shaped step touches; None where it was not counted.
    """

    device: str = "cpu"
    tables: dict[str, dict[str, Measured]] = field(default_factory=dict)
    peaks: dict[tuple[str, str], float] = field(default_factory=dict)
    folders: dict[str, float] = field(default_factory=dict)
    operations: dict[str, list[Counted]] = field(default_factory=dict)
    occurrence: Occurrence | None = None

    def add(self, table: str, row: str, measured: Measured) -> None:
        """Keeps one measurement."""
        self.tables.setdefault(table, {})[row] = measured

    def get(self, table: str, row: str) -> Measured | None:
        """A measurement, if it was made."""
        return self.tables.get(table, {}).get(row)

    def steps(self, short: int, long: int, *, gpu: int) -> tuple[int, int]:
        """Steps of the two runs whose difference is measured.

        On a GPU both go on after their graphs are recorded, and the second by `gpu` steps more: with too few of its
        short steps the difference is lost in what building and judging a network costs.
        """
        return (short, long) if self.device == "cpu" else (short + WARM + 1, short + WARM + 1 + gpu)

    @property
    def clock(self) -> Literal["cpu", "wall"]:
        """The main one: on a GPU the CPU's time says little."""
        return "cpu" if self.device == "cpu" else "wall"

    def seconds(self, table: str, row: str) -> float | None:
        """A measurement by the main clock, if it was made."""
        found = self.get(table, row)
        return found and getattr(found.cost, self.clock)

    def by_count(self, table: str, suffix: str = "") -> Mapping[str, Mapping[int, float]]:
        """Seconds by name and k, of rows "name: k = ..." that end in the suffix."""
        found: dict[str, dict[int, float]] = {}
        for row, measured in self.tables.get(table, {}).items():
            if match := re.fullmatch(rf"(.+): k = (\d+){re.escape(suffix)}", row):
                found.setdefault(match[1], {})[int(match[2])] = getattr(measured.cost, self.clock)
        return found
