"""What a command answers: tables of numbers with a format for each column, and the sentences beside them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias

import pandas as pd

from msda_bench.errors import printable
from msda_bench.results.decision import OPPOSITE, SAME, UNKNOWN, WORSE
from msda_bench.suite.plan import MetricInfo

# Private characters stand for markup until a table is rendered; they are removed from outside text.
BOLD, SECOND, SMALL = ("\ue000", "\ue001"), ("\ue002", "\ue003"), ("\ue004", "\ue005")
BEST_MARK = "*"
"""The mark of the best mean, and of every method that was not shown to be worse. It means nothing else anywhere."""
MARKS = {"better": " +", "worse": " -"}
"""Marks of gains over the baseline, by outcome."""
Kind: TypeAlias = Literal["caption", "note", "problem", "verdict", "line", "nothing"]


@dataclass(frozen=True)
class Unit:
    """The unit of a table's numbers, and the power of ten by which they are scaled; numbers have two decimals."""

    label: str = ""
    exponent: int = 0

    @classmethod
    def of(cls, measure: MetricInfo, means: Iterable[float]) -> Unit:
        """Percent, or for other metrics a scale that gives the largest mean one to three digits before the point."""
        if measure.percent:
            return cls(measure.unit)
        largest = max((abs(mean) for mean in means if not math.isnan(mean)), default=0.0)
        exponent = 0 if largest == 0 or 1 <= largest < 1000 else math.floor(math.log10(largest)) - 1  # noqa: PLR2004
        times = f", times 10^{-exponent}" if exponent else ""
        return cls(f"{measure.label}{times}{measure.unit.removeprefix(measure.label)}", exponent)

    def show(self, value: float | None, *, signed: bool = False) -> str:
        """Formats a number, with three significant digits if it is far larger than the others; `-` for None or NaN."""
        if value is None or pd.isna(value):
            return "-"
        number = value * 10.0**-self.exponent
        text = f"{number:.2f}" if abs(number) < 1000 else f"{number:.3g}"  # noqa: PLR2004
        return f"+{text}" if signed and number >= 0 else text

    def interval(self, low: float, high: float) -> str:
        """Formats an interval as `low .. high`; `-` if there is none."""
        return "-" if pd.isna(low) or pd.isna(high) else f"{self.show(low)} .. {self.show(high)}"


PLAIN = Unit()
_LEAST_PERCENT = 0.05
"""The smallest percentage that is shown as more than 0."""


class Column(NamedTuple):
    """A column of a table as readers see it.

    Attributes:
        name: its head.
        format: a name of `FORMATS`.
        of: the columns of numbers that a cell shows, as the format takes them.
        unit: the scale of the numbers.
        where: a column of the table's rows and its value in those that are shown here; None for all rows.
    """

    name: str
    format: str
    of: Sequence[str]
    unit: Unit = PLAIN
    where: tuple[str, Any] | None = None


class Line(NamedTuple):
    """A sentence beside tables.

    Attributes:
        kind: a `caption` explains tables, and `--quiet` hides it; `nothing` tells why there is no table.
        text: the sentence.
        wrapped: whether it is printed in lines of 80 characters.
    """

    kind: Kind
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
        show, rows = FORMATS[column.format], self.rows
        if column.where is not None:
            rows = rows[(rows[column.where[0]] == column.where[1]).to_numpy()]
        texts = [
            show(column.unit, *values) for values in zip(*(rows[name].tolist() for name in column.of), strict=True)
        ]
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
        return [tuple(map(printable, names)) for names in zip(*(self.rows[name] for name in self.about), strict=True)]

    def cut(self, methods: Sequence[str]) -> Table:
        """Keeps only what is about the named methods; everything if none are named.

        A pair of methods is kept if both are named, or if one of them is the only one named.
        """
        wanted = {*methods}
        stays = [
            not wanted or {*names} <= wanted or (len(wanted) == 1 and wanted <= {*names}) for names in self.methods
        ]
        first, *rest = self.columns
        if self.by_column:
            rest = [column for column, stay in zip(rest, stays, strict=True) if stay]
        return replace(self, rows=self.rows if self.by_column else self.rows[stays], columns=(first, *rest))


@dataclass(frozen=True)
class Section:
    """Tables, and the sentences below them."""

    tables: tuple[Table, ...] = ()
    lines: tuple[Line, ...] = ()


@dataclass(frozen=True)
class Report:
    """What a command answers.

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


def show_p(p: float) -> str:
    """Formats a p-value with four decimals, or as `<.0001`."""
    return "-" if pd.isna(p) else f"{p:.4f}" if p >= 0.0001 else "<.0001"  # noqa: PLR2004


def show_share(count: float | None, total: int) -> str:
    """Formats a percentage as `12.3`, or as `<0.1`; empty for None or NaN, where nothing was counted."""
    if pd.isna(count):
        return ""
    percent = 100 * count / total
    return "<0.1" if 0 < percent < _LEAST_PERCENT else f"{percent:.1f}"


def mean_text(row: Mapping[Any, Any]) -> str:
    """Formats a row of the leaderboard as `mean +- standard error`."""
    form = "{:.2f}" if row["metric"].endswith("_percent") else "{:.3g}"
    error = "" if pd.isna(row["standard_error"]) else f" +- {form.format(row['standard_error'])}"
    return "-" if pd.isna(row["mean"]) else form.format(row["mean"]) + error


def _text(_: Unit, *values: Any) -> str:
    return " / ".join(dict.fromkeys(map(printable, values)))


def _mean(unit: Unit, mean: Any, error: Any, rank: Any, mark: str, n: str) -> str:
    """`mean +- standard error`, with markup for the best and second; one run gives its mean, none gives `-`."""
    if pd.isna(mean):
        return "-"
    start, end = {1: BOLD, 2: SECOND}.get(int(rank), ("", "")) if pd.notna(rank) else ("", "")
    more = "" if pd.isna(error) else f"{SMALL[0]} +- {unit.show(error)}{SMALL[1]}"
    return f"{start}{unit.show(mean)}{end}{more}{mark}{n and f' ({n})'}"


def _with_error(unit: Unit, value: float, error: float, rest: str = "") -> str:
    return f"{unit.show(value)}{'' if pd.isna(error) else f' +- {unit.show(error)}'}{rest}"


def _pair(_: Unit, first: str, second: str, outcome: str) -> str:
    names = (second, first) if outcome == WORSE else (first, second)
    sign = ">" if outcome in OPPOSITE else "=" if outcome == SAME else "against"
    return f" {sign} ".join(map(printable, names))


def _turned(unit: Unit, value: float, outcome: str) -> str:
    return unit.show(-value if outcome == WORSE else value, signed=True)


def _turned_interval(unit: Unit, low: float, high: float, outcome: str) -> str:
    return unit.interval(-high, -low) if outcome == WORSE else unit.interval(low, high)


def _bracketed_p(_: Unit, p: float, outcome: str, reason: str, n: float) -> str:
    """In brackets where there are too few pairs to be significant."""
    few = outcome == UNKNOWN and reason != "not significant"
    return f"({show_p(p)})" if n and few else show_p(p)


def _of_planned(_: Unit, n: Any, planned: Any) -> str:
    return "-" if pd.isna(n) or pd.isna(planned) else f"{n}/{planned}"


def _fixed(digits: int) -> Callable[..., str]:
    return lambda _, value: "-" if pd.isna(value) else f"{value:.{digits}f}"


FORMATS: Mapping[str, Callable[..., str]] = {
    "text": _text,
    "count": lambda _, value: "-" if pd.isna(value) else str(value),
    "number": lambda unit, value: unit.show(value),
    "difference": lambda unit, value, mark="": unit.show(value, signed=True) + mark,
    "interval": lambda unit, low, high: unit.interval(low, high),
    "mean": _mean,
    "number with error": _with_error,
    "p": lambda _, p: show_p(p),
    "p in brackets": _bracketed_p,
    "pair": _pair,
    "difference of a pair": _turned,
    "interval of a pair": _turned_interval,
    "n/planned": _of_planned,
    "of tested": lambda _, n, tested: f"{n}/{tested}" if tested else "-",
    "gain with mark": lambda unit, value, outcome: unit.show(value, signed=True) + MARKS.get(outcome, ""),
    "share": lambda _, count, total: show_share(count, total),
    "domain": lambda _, domain, target: "itself" if domain == target else printable(domain),
    "rank": _fixed(2),
    "weight": _fixed(3),
    "worth": _fixed(1),
    "difference if comparable": lambda unit, value, is_so: unit.show(value, signed=True) if is_so else "",
    "z if comparable": lambda _, value, is_so: ("-" if pd.isna(value) else f"{value:+.1f}") if is_so else "",
}
"""How columns of numbers become the text of a cell, by name: functions of a unit and of the numbers."""
