"""The report of a command: tables of numbers, how each column is written, and the sentences beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias

import pandas as pd

from msda_bench.errors import printable
from msda_bench.results import formats
from msda_bench.results.formats import PLAIN, Unit

BEST_MARK = "*"
"""The mark of the best mean, and of every method that was not shown to be worse. It means nothing else anywhere."""
LineKind: TypeAlias = Literal["caption", "note", "problem", "verdict", "line", "nothing"]


class Column(NamedTuple):
    """A column of a table as readers see it.

    Attributes:
        name: its head.
        show: writes a cell from the unit and the numbers of a row; see `msda_bench.results.formats`.
        of: the columns of numbers that a cell shows, as `show` takes them.
        unit: the scale of the numbers.
        where: a column of the table's rows and its value in those that are shown here; None for all rows.
    """

    name: str
    show: Callable[..., str]
    of: Sequence[str]
    unit: Unit = PLAIN
    where: tuple[str, Any] | None = None


TEST_COLUMNS = (
    Column("p", formats.p_in_brackets, ["p_holm", "outcome", "reason", "n_paired"]),
    Column("n", formats.of_planned, ["n_paired", "n_planned"]),
)
"""The columns of a comparison by its corrected test."""


class Line(NamedTuple):
    """A sentence beside tables.

    Attributes:
        kind: a `caption` explains tables, and `--quiet` hides it; `nothing` is the reason why there is no table.
        text: the sentence.
        wrapped: whether it is printed in lines of 80 characters.
    """

    kind: LineKind
    text: str
    wrapped: bool = True

    def __str__(self) -> str:
        return self.text if self.kind in {"caption", "line", "nothing"} else f"{self.kind}: {self.text}"


@dataclass(frozen=True)
class Table:
    """One table of numbers.

    Attributes:
        name: a name for a file or label: letters, digits and hyphens.
        title: the title.
        rows: the numbers; one row for each row of the table, or with `by` several.
        columns: how they are shown; the first has words, the others numbers.
        by: the column whose values have a row of the table each, if `columns` show rows side by side; else empty.
        notes: paragraphs that explain the table.
        verdict: sentences on the result.
        about: the columns of the methods that a row is about.
        by_column: whether each column but the first is about the method that it is named after instead.
    """

    name: str
    title: str
    rows: pd.DataFrame
    columns: tuple[Column, ...]
    by: str = ""
    notes: tuple[str, ...] = ()
    verdict: tuple[str, ...] = ()
    about: tuple[str, ...] = ("method",)
    by_column: bool = False

    @cached_property
    def cells(self) -> pd.DataFrame:
        """The texts that readers see."""
        texts = {printable(column.name): self._texts(column) for column in self.columns}
        return pd.DataFrame(texts, dtype=object)

    def _texts(self, column: Column) -> list[str]:
        rows = self.rows
        if column.where is not None:
            name, value = column.where
            rows = rows[(rows[name] == value).to_numpy()]
        numbers = [rows[name].tolist() for name in column.of]
        texts = [column.show(column.unit, *values) for values in zip(*numbers, strict=True)]
        if not self.by:
            return texts
        by_head: dict[Any, str] = {}
        for head, text in zip(rows[self.by].tolist(), texts, strict=True):
            by_head.setdefault(head, text)
        return [by_head.get(head, "-") for head in dict.fromkeys(self.rows[self.by].tolist())]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns of numbers."""
        return tuple(printable(column.name) for column in self.columns[1:])

    @property
    def methods(self) -> Sequence[tuple[str, ...]]:
        """The methods that each of the `rows`, or each column of numbers, is about."""
        if self.by_column:
            return [(name,) for name in self.names]
        if not self.about:
            return [()] * len(self.rows)
        columns = [self.rows[name] for name in self.about]
        return [tuple(map(printable, names)) for names in zip(*columns, strict=True)]

    def cut(self, methods: Sequence[str]) -> Table:
        """Keeps only what is about the named methods; everything if none are named.

        A pair of methods is kept if both are named, or if one of them is the only one named.
        """
        if not methods:
            return self
        wanted = set(methods)
        stays = []
        for names in self.methods:
            is_only_one_named = len(wanted) == 1 and wanted <= set(names)
            stays.append(wanted.issuperset(names) or is_only_one_named)
        if not self.by_column:
            return replace(self, rows=self.rows[stays])
        first, *rest = self.columns
        kept = [column for column, stay in zip(rest, stays, strict=True) if stay]
        return replace(self, columns=(first, *kept))


@dataclass(frozen=True)
class Section:
    """Tables, and the sentences below them."""

    tables: tuple[Table, ...] = ()
    lines: tuple[Line, ...] = ()


@dataclass(frozen=True)
class Report:
    """The answer of a command.

    Attributes:
        sections: the tables and sentences, in their order.
        data: the rows that `--format csv` prints; None where there are none.
        complete: whether every run is ok, no record damaged or in conflict, and whatever the command asks for holds.
    """

    sections: tuple[Section, ...] = ()
    data: pd.DataFrame | None = None
    complete: bool = True

    @property
    def tables(self) -> list[Table]:
        """All tables."""
        return [table for section in self.sections for table in section.tables]


def mean_text(row: Mapping[Any, Any]) -> str:
    """Formats a row of the leaderboard as `mean +- standard error`."""
    form = "{:.2f}" if row["metric"].endswith("_percent") else "{:.3g}"
    error = "" if pd.isna(row["standard_error"]) else f" +- {form.format(row['standard_error'])}"
    return "-" if pd.isna(row["mean"]) else form.format(row["mean"]) + error
