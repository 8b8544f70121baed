"""Renders tables for readers as text, in any of tabulate's formats."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress, pairwise
from typing import Any, Literal, TypeAlias

import pandas as pd
from tabulate import MIN_PADDING, tabulate, tabulate_formats

from msda_bench.errors import BenchError
from msda_bench.suite.mistakes import hint, shown
from msda_bench.suite.plan import Measure

Marks: TypeAlias = Literal["holm", "paper"]
TEXT_FORMATS: tuple[str, ...] = tuple(tabulate_formats)
WIDTH = 80
"""The line width of prose."""
TABLE_WIDTH = 100
"""The line width of a plain table if the output is no terminal."""

# Private characters stand for markup until a table is rendered; they are removed from outside text.
_BOLD, _SECOND, _SMALL = ("\ue000", "\ue001"), ("\ue002", "\ue003"), ("\ue004", "\ue005")
_NOTHING = "\ue006"
_MARKUP: Mapping[str, Sequence[tuple[str, str]]] = {
    "latex": ((r"\textbf{", "}"), (r"\underline{", "}"), (r"{\scriptsize ", "}")),
    "html": (("<b>", "</b>"), ("<u>", "</u>"), ("<small>", "</small>")),
    "markdown": (("**", "**"), ("", ""), ("", "")),
}


@dataclass(frozen=True)
class Table:
    """One table, not yet rendered.

    Attributes:
        name: a name for a file or label: letters, digits and hyphens.
        title: the title.
        cells: texts; the first column holds words, the others numbers.
        notes: paragraphs that explain the table.
        verdict: sentences on the result.
        remarks: notes on its runs, and their problems.
        about: the methods that each row is about, or each column of numbers if `by_column`; None if the first column,
            or the columns' names, are methods.
    """

    name: str
    title: str
    cells: pd.DataFrame
    notes: tuple[str, ...] = ()
    verdict: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    about: Sequence[tuple[str, ...]] | None = None
    by_column: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns of numbers."""
        return tuple(self.cells.columns[1:])

    @property
    def methods(self) -> Sequence[tuple[str, ...]]:
        """The methods that each row, or each column of numbers, is about."""
        if self.about is not None:
            return self.about
        return [(name,) for name in (self.columns if self.by_column else self.cells.iloc[:, 0])]

    def cut(self, columns: Sequence[str], methods: Sequence[str]) -> Table:
        """Keeps only the named columns, and what is about the named methods; everything if none are named.

        A pair of methods is kept if both are named, or if one of them is the only one named.
        """
        wanted = {*methods}
        stays = [not wanted or {*pair} <= wanted or (len(wanted) == 1 and wanted <= {*pair}) for pair in self.methods]
        rows = slice(None) if self.by_column else stays
        known = [*compress(self.columns, stays)] if self.by_column else self.columns
        kept = [name for name in columns or self.columns if name in known]
        return replace(self, cells=self.cells.loc[rows, [self.cells.columns[0], *kept]], about=None)

    def transposed(self) -> Table:
        """The table with rows and columns exchanged."""
        first = self.cells.columns[0]
        turned = self.cells.set_index(first).T.rename_axis(index=first, columns=None).reset_index()
        return replace(self, cells=turned)


def check_names(tables: Sequence[Table], columns: Sequence[str], methods: Sequence[str]) -> None:
    """Refuses columns and methods that no table has.

    Raises:
        BenchError: no table has such a column or method.
    """
    for noun, wanted, known in (
        ("column", columns, [name for table in tables for name in table.columns]),
        ("method", methods, [name for table in tables for names in table.methods for name in names]),
    ):
        for name in wanted:
            if tables and name not in known:
                why = hint(name, dict.fromkeys(known))
                raise BenchError(f"--{noun}s: {shown(name)} is not a {noun} of any table here{why}")


@dataclass(frozen=True)
class Unit:
    """The unit of a table's numbers, and the power of ten by which they are scaled."""

    label: str
    exponent: int = 0
    digits: int = 2

    @classmethod
    def of(cls, measure: Measure, means: Iterable[float], digits: int = 2) -> Unit:
        """Percent, or for other metrics a scale that gives the largest mean one to three digits before the point."""
        if measure.percent:
            return cls(measure.unit, 0, digits)
        largest = max((abs(mean) for mean in means if not math.isnan(mean)), default=0.0)
        exponent = 0 if largest == 0 or 1 <= largest < 1000 else math.floor(math.log10(largest)) - 1  # noqa: PLR2004
        times = f", times 10^{-exponent}" if exponent else ""
        return cls(f"{measure.label}{times}{measure.unit.removeprefix(measure.label)}", exponent, digits)

    def show(self, value: float | None, *, signed: bool = False) -> str:
        """Formats a number, with three significant digits if it is far larger than the others; `-` for None or NaN."""
        if value is None or math.isnan(value):
            return "-"
        number = value * 10.0**-self.exponent
        text = f"{number:.{self.digits}f}" if abs(number) < 1000 else f"{number:.3g}"  # noqa: PLR2004
        return f"+{text}" if signed and number >= 0 else text

    def interval(self, low: float, high: float) -> str:
        """Formats an interval as `low .. high`; `-` if there is none."""
        return "-" if pd.isna(low) or pd.isna(high) else f"{self.show(low)} .. {self.show(high)}"


def show_p(p: float) -> str:
    """Formats a p-value with four decimals, or as `<.0001`."""
    return "-" if pd.isna(p) else f"{p:.4f}" if p >= 0.0001 else "<.0001"  # noqa: PLR2004


def mean_cell(unit: Unit, row: Mapping[Any, Any], mark: str = "", n: str = "") -> str:
    """Formats `mean +- standard error`, with markup for the best and second; one run gives its mean, none gives `-`."""
    if pd.isna(row["mean"]):
        return "-"
    start, end = {1: _BOLD, 2: _SECOND}.get(row["rank"], ("", "")) if pd.notna(row["rank"]) else ("", "")
    error = row["standard_error"]
    more = "" if pd.isna(error) else f"{_SMALL[0]} +- {unit.show(error)}{_SMALL[1]}"
    return f"{start}{unit.show(row['mean'])}{end}{more}{mark}{n and f' ({n})'}"


def mean_text(row: Mapping[Any, Any]) -> str:
    """Formats a row of the leaderboard as `mean +- standard error`."""
    form = "{:.2f}" if row["metric"].endswith("_percent") else "{:.3g}"
    error = "" if pd.isna(row["standard_error"]) else f" +- {form.format(row['standard_error'])}"
    return "-" if pd.isna(row["mean"]) else form.format(row["mean"]) + error


def aligned(cells: Sequence[str], marks: str = "*!") -> list[str]:
    """Pads the unmarked cells of a column if others end in a mark, so that their digits are aligned."""
    marked = any(cell.endswith(tuple(marks)) for cell in cells)
    return [f"{cell} " if marked and not cell.endswith(tuple(marks)) else cell for cell in cells]


def render(table: Table, form: str = "simple", width: int = TABLE_WIDTH, *, unicode: bool = False) -> str:
    """Renders a table in one of tabulate's formats; splits a wide plain table into several."""
    kind = _kind(form)
    cells = table.cells.map(lambda cell: _escaped(cell, form))
    cells.columns = [_escaped(str(name), form) for name in cells]
    parts = _parts(cells, width) if form in {"simple", "plain"} else [cells]
    text = "\n\n".join(_tabulated(part, form) for part in parts)
    for (start, end), (begins, ends) in zip((_BOLD, _SECOND, _SMALL), _MARKUP.get(kind, ()), strict=False):
        text = text.replace(start, begins).replace(end, ends)
    if kind in {"latex", "markdown"}:
        text = re.sub(" {2,}", " ", text)  # markup has made the padding uneven
    if kind == "latex":
        return text.replace("+-", r"$\pm$").replace(_NOTHING, "{}")
    return text.replace("+-", "±") if kind in {"html", "markdown"} or unicode else text


def latex_file(table: Table) -> str:
    """Writes a table as a LaTeX file for a document that uses booktabs; its label is `tab:NAME`."""
    notes = [
        f"  \\par\\footnotesize {tex(note)}" for note in (" ".join(table.verdict), *table.notes, *table.remarks) if note
    ]
    lines = [
        "% Written by msda-bench, which writes it anew after each run. In the preamble: \\usepackage{booktabs}",
        r"\begin{table}",
        r"  \centering",
        f"  \\caption{{{tex(table.title)}}}",
        f"  \\label{{tab:{table.name}}}",
        render(table, "latex_booktabs"),
        *notes,
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def markdown_text(table: Table) -> str:
    """Writes a table as GitHub's Markdown, with its title and notes."""
    title, verdict = f"### {_escaped(table.title, 'pipe')}", _escaped(" ".join(table.verdict), "pipe")
    notes = "\n".join(f"- {_escaped(note, 'pipe')}" for note in (*table.notes, *table.remarks))
    return "\n\n".join(part for part in (title, verdict, render(table, "pipe"), notes) if part).replace("+-", "±")


def tex(text: str) -> str:
    """Escapes prose for LaTeX."""
    return "".join(_TEX.get(char, char) for char in text).replace("+-", r"$\pm$")


def paragraph(text: str, width: int = WIDTH, indent: str = "  ") -> str:
    """Wraps prose between words and indents all lines but the first."""
    return textwrap.fill(text, width, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False)


def _tabulated(cells: pd.DataFrame, form: str) -> str:
    places, plain = ("left", *("right" for _ in cells.columns[1:])), _kind(form) == "plain"
    columns = {name: aligned(cells[name].tolist()) if plain else cells[name].tolist() for name in cells}
    text = tabulate(
        columns, headers="keys", tablefmt=form, disable_numparse=True, colalign=places, headersalign=places,
        preserve_whitespace=plain,
    )  # fmt: skip
    return "\n".join(line.rstrip() for line in str(text).splitlines())


def _parts(cells: pd.DataFrame, width: int) -> Iterator[pd.DataFrame]:
    """Splits the columns into tables of this width, each with the first column."""
    widths = [
        max(len(str(name)) + MIN_PADDING, *(len(cell) for cell in aligned(cells[name].tolist()))) for name in cells
    ]
    starts, used = [1], widths[0]
    for place in range(1, len(widths)):
        used += 2 + widths[place]
        if used > width and place > starts[-1]:
            starts.append(place)
            used = widths[0] + 2 + widths[place]
    for start, end in pairwise([*starts, len(widths)]):
        yield cells.iloc[:, [0, *range(start, end)]]


def _kind(form: str) -> str:
    if form.startswith("latex"):
        return "latex"
    return {"html": "html", "unsafehtml": "html", "github": "markdown", "pipe": "markdown"}.get(form, "plain")


def _escaped(text: str, form: str) -> str:
    """Escapes text for a format where tabulate does not; plain text loses its markup."""
    kind = _kind(form)
    if kind == "plain":
        return "".join(char for char in text if not "\ue000" <= char <= "\ue005")
    if kind == "markdown":
        return "".join(f"\\{char}" if char in r"\`*_[]<>|#" else char for char in text)
    if kind == "latex":
        # LaTeX would read [ or * after the end of a row as an option.
        text = f"{_NOTHING}{text}" if text.startswith(("[", "*")) else text
        return tex(text) if form == "latex_raw" else text
    if form == "unsafehtml":
        return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text


_TEX = {
    **{char: f"\\{char}" for char in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "\\": r"\textbackslash{}",
    "<": r"\ensuremath{<}",
    ">": r"\ensuremath{>}",
}
