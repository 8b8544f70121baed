"""Doubts about the inputs of a user's file, each with the option that settles it."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from msda_bench.api import Array
from msda_bench_builtin.datasets.tables.parts import Parts
from msda_bench_builtin.datasets.tables.read import Column

Fate = Literal["none", "drop", "categories", "group", "groups", "test", "missing"]
MEASURED = 10
"""A column of fewer different numbers is not taken for a measurement."""
_LEVELS = 20
"""Of a category with more values rows are not compared."""


@dataclass(frozen=True)
class Finding:
    """A doubt about inputs.

    Attributes:
        kind: the first word of its line, such as `date`.
        what: what was seen, and where.
        fate: the parameter of the dataset that settles it.
        column: the column that the parameter gets, with the texts of `test`, or the columns and texts of `missing`.
        remedy: what else the user can do.
    """

    kind: str
    what: str
    fate: Fate = "none"
    column: str = ""
    remedy: str = ""

    @property
    def name(self) -> str:
        """The column without the texts."""
        return self.column.rpartition("=")[0] if self.fate == "test" else self.column

    def line(self, *, answered: bool) -> str:
        """The doubt in a line; `answered` if the suite already has the parameter."""
        return f"{self.kind}: {self.what}{self._answered() if answered else self._open()}"

    def _answered(self) -> str:
        """How the suite settles the doubt."""
        column = shlex.quote(self.column)
        if self.fate in {"group", "groups"}:
            return f", so the suite has `{self.fate}: {self.column}` (as by `--group {column}`)"
        if self.fate == "test":
            how = f"so the suite has `test_rows: {self.column}` (as by `--test {column}`)"
            return f", {how}; `--test=` draws test rows at random"
        if self.fate == "missing":
            return ", so it counts as missing there (`missing`; `--missing` names others)"
        return f"{'' if self.fate == 'none' else f', so it is in `{self.fate}`'}{self._remedy}"

    def _open(self) -> str:
        """What would settle the doubt."""
        column = shlex.quote(self.column)
        if self.fate in {"group", "groups"}:
            return f"; `--group {column}` (`{self.fate}` in a suite) keeps them together"
        if self.fate == "test":
            return f"; `--test {column}` (`test_rows` in a suite) makes its test rows the test"
        if self.fate in {"drop", "categories"}:
            return f"; `{self.fate}: [{self.column}]` answers that"
        return self._remedy

    @property
    def _remedy(self) -> str:
        return f"; {self.remedy}" if self.remedy else ""


@dataclass(frozen=True, eq=False)
class Look:
    """The rows of a file, to be looked through.

    Attributes:
        path: the file.
        columns: the columns of inputs.
        rows: places in the file of the rows that are read, in its order.
        places: of each of these rows, its domain's place among `names`.
        names: of the domains.
        labels: of each of these rows, the place of its label, -1 where there is none.
        regression: whether labels are numbers, whose places are in their order.
        domain: the name of the column of domains.
        groups: of each of these rows, if the user says which belong together.
        test: which of these rows are official test rows, if the user says so.
        says_test: whether the user says which are, or that none are.
        alike: whether the numbers of each domain are standardised by themselves.
        fills: whether missing values are hidden.
        gaps: texts that stand for missing values somewhere in the file.
        beside: numbers of each of these rows that rows are compared by, too.
        kind: what the columns are in the file.
    """

    path: Path
    columns: Mapping[str, Column]
    rows: Array
    places: Array
    names: tuple[str, ...]
    labels: Array
    regression: bool
    domain: str
    groups: Array | None
    test: Array | None
    says_test: bool
    alike: bool
    gaps: frozenset[str]
    beside: tuple[Array, ...] = ()
    kind: Literal["column", "array"] = "column"
    fills: bool = False

    @classmethod
    def of(
        cls,
        path: Path,
        columns: Mapping[str, Column],
        parts: Parts,
        domain: str,
        *,
        alike: bool = False,
        says_test: bool = False,
    ) -> Look:
        """Looks at the rows that are read."""
        places = np.full(len(parts.y), -1)
        for place, mine in enumerate(parts.rows.values()):
            places[mine] = place
        rows = np.flatnonzero(places >= 0)
        groups, test = (None if values is None else values[rows] for values in (parts.groups, parts.test))
        return cls(
            path=path,
            columns=columns,
            rows=rows,
            places=places[rows],
            names=tuple(parts.rows),
            labels=parts.label_places(rows),
            regression=not parts.classes,
            domain=domain,
            groups=groups,
            test=test,
            says_test=says_test or test is not None,
            alike=alike,
            gaps=parts.gaps,
        )

    def codes(self, name: str) -> Array:
        """The places of a column's texts in the rows that are read."""
        return self.columns[name].codes[self.rows]

    def values(self, name: str) -> Array:
        """A column's numbers in the rows that are read, NaN where one is missing."""
        return self.columns[name].values[self.rows]

    @functools.cached_property
    def measured(self) -> dict[str, Array]:
        """The numbers of each column of measurements; see `values`."""
        measured: dict[str, Array] = {}
        for name, column in self.columns.items():
            if len(column.numbers) >= MEASURED and np.isfinite(column.numbers).all():
                measured[name] = self.values(name)
        return measured

    def compared(self, leave_out: str) -> Iterator[Array]:
        """What rows can be compared by: measurements, and each value of a category as 0 and 1."""
        yield from self.beside
        for name, column in self.columns.items():
            if name == leave_out:
                continue
            if name in self.measured:
                yield self.measured[name]
            elif len(column.texts) <= _LEVELS:
                codes = self.codes(name)
                yield from ((codes == code).astype(float) for code in range(len(column.texts)))

    def quartiles(self, name: str, least: int) -> tuple[Array, Array, Array]:
        """The quartiles of a column's numbers in each domain, NaN where fewer than `least` are there."""
        values = self.values(name)
        ordered = values[np.lexsort((values, self.places))]  # in each domain NaN last
        sizes = np.bincount(self.places, minlength=len(self.names))
        starts = np.cumsum(sizes) - sizes
        counts = np.bincount(self.places[np.isfinite(values)], minlength=len(self.names))
        quartiles = []
        for share in (0.25, 0.5, 0.75):
            after_start = (np.maximum(counts - 1, 0) * share).astype(int)
            quartiles.append(np.where(counts >= least, ordered[starts + after_start], np.nan))
        low, middle, high = quartiles
        return low, middle, high
