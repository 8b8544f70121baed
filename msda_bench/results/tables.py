"""Renders tables as text, in any of tabulate's formats, and frames as CSV; cleans what comes from outside."""

from __future__ import annotations

import csv
import functools
import io
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import pandas as pd
from tabulate import MIN_PADDING, tabulate

from msda_bench.errors import BenchError, printable
from msda_bench.results.formats import BOLD, MARKS, SECOND, SMALL
from msda_bench.results.report import BEST_MARK, Table
from msda_bench.suite.issues import hint, shown

WIDTH = 80
"""The line width of prose."""
TABLE_WIDTH = 100
"""The line width of a plain table if the output is no terminal."""
_LONGEST = 20_000
"""The maximum length of a paragraph; notes on many methods are long."""
_LONGEST_FIELD = 1_000_000
"""The maximum length of a text field; notes on many methods are long."""

_CELL_MARKS = (BEST_MARK, *MARKS.values())
_NOTHING, _BAR = "\ue006", "\ue007"
_MARKUP: Mapping[str, Sequence[tuple[str, str]]] = {
    "latex": ((r"\textbf{", "}"), (r"\underline{", "}"), (r"{\scriptsize ", "}")),
    "markdown": (("**", "**"), ("", ""), ("", "")),
}


def check_methods(tables: Sequence[Table], methods: Sequence[str]) -> None:
    """Refuses methods that no table has.

    Raises:
        BenchError: no table has such a method.
    """
    known = dict.fromkeys(name for table in tables for names in table.methods for name in names)
    for name in methods:
        if tables and name not in known:
            raise BenchError(f"--methods: {shown(name)} is not a method of any table here{hint(name, known)}")


def aligned(cells: Sequence[str]) -> list[str]:
    """Pads the cells of a column whose mark is shorter than that of others, so that their digits are aligned."""
    lengths = [max((len(mark) for mark in _CELL_MARKS if cell.endswith(mark)), default=0) for cell in cells]
    longest = max(lengths, default=0)
    return [cell + " " * (longest - length) for cell, length in zip(cells, lengths, strict=True)]


def render(table: Table, form: str = "simple", width: int = TABLE_WIDTH, *, unicode: bool = False) -> str:
    """Renders a table in one of tabulate's formats; splits a wide plain table into several."""
    kind = _kind(form)
    cells = table.cells.map(lambda cell: _escaped(cell, form))
    cells.columns = [_escaped(str(name), form) for name in cells]
    parts = _parts(cells, width) if kind == "plain" else [cells]
    text = "\n\n".join(_tabulated(part, form) for part in parts)
    for (start, end), (begins, ends) in zip((BOLD, SECOND, SMALL), _MARKUP.get(kind, ()), strict=False):
        text = text.replace(start, begins).replace(end, ends)
    if kind in {"latex", "markdown"}:
        text = re.sub(" {2,}", " ", text)  # markup has made the padding uneven
    if kind == "latex":
        return text.replace("+-", r"$\pm$").replace(_NOTHING, "{}").replace(_BAR, _TEX["|"])
    return text.replace("+-", "±") if kind == "markdown" or unicode else text


def heading(table: Table, form: str) -> str:
    """The title above one of several tables; empty in LaTeX, where it would be read as text between them."""
    return "" if _kind(form) == "latex" else f"{_escaped(clean(table.title), form)}\n\n"


def latex_text(table: Table) -> str:
    """Writes a table for a LaTeX document that uses booktabs; its label is `tab:NAME`."""
    lines = [
        r"\begin{table}",
        r"  \centering",
        f"  \\caption{{{tex(clean(table.title))}}}",
        f"  \\label{{tab:{table.name}}}",
        render(table, "latex_booktabs"),
        *(f"  \\par\\footnotesize {tex(clean(text))}" for text in (" ".join(table.verdict), *table.notes) if text),
        r"\end{table}",
    ]
    return "\n".join(lines)


def markdown_text(table: Table) -> str:
    """Writes a table as GitHub's Markdown, with its title and notes."""
    title, verdict = (_escaped(clean(text), "pipe") for text in (table.title, " ".join(table.verdict)))
    parts = (f"### {title}", verdict, render(table, "pipe"), markdown_list(table.notes))
    return "\n\n".join(part for part in parts if part).replace("+-", "±")


def markdown_list(lines: Iterable[object]) -> str:
    """Writes sentences as a list in GitHub's Markdown."""
    return "\n".join(f"- {_escaped(clean(str(line)), 'pipe')}" for line in lines)


def clean(text: str) -> str:
    """Prose without anything that a terminal or an editor would obey."""
    return printable(text, _LONGEST)


def tex(text: str) -> str:
    """Escapes prose for LaTeX."""
    return "".join(_TEX.get(char, char) for char in text).replace("+-", r"$\pm$")


def paragraph(text: str, width: int = WIDTH, indent: str = "  ") -> str:
    """Wraps prose between words and indents all lines but the first."""
    return textwrap.fill(clean(text), width, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False)


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
    return {"simple": "plain", "github": "markdown", "pipe": "markdown"}.get(form, "latex")


def _escaped(text: str, form: str) -> str:
    kind = _kind(form)
    if kind == "plain":
        return "".join(char for char in text if not "\ue000" <= char <= "\ue005")
    if kind == "markdown":
        return "".join(f"\\{char}" if char in r"\`*_[]<>|#" else char for char in text)
    if kind == "latex":
        # LaTeX would read [ or * after the end of a row as an option.
        text = text.replace("|", _BAR)  # tabulate does not escape it
        return f"{_NOTHING}{text}" if text.startswith(("[", "*")) else text
    return text


_TEX = {
    **{char: f"\\{char}" for char in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "\\": r"\textbackslash{}",
    "<": r"\ensuremath{<}",
    ">": r"\ensuremath{>}",
    "|": r"\textbar{}",
}


def csv_text(frame: pd.DataFrame) -> str:
    r"""Writes a frame as CSV with a header line, safe to open in a spreadsheet.

    Floats have six significant digits, Booleans are true and false, missing values are empty fields, and lines end with
    `\n`. Texts are printable, runs of white space become one space, and a text that a spreadsheet would read as a
    formula gets a leading apostrophe.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")  # half the time of pandas
    writer.writerow(map(_text, frame.columns))
    writer.writerows(zip(*(_fields(frame[name]) for name in frame), strict=True))
    return text.getvalue()


def _fields(column: pd.Series[Any]) -> list[str]:
    show: Callable[[Any], str] = functools.cache(_text)
    if pd.api.types.is_bool_dtype(column.dtype):
        show = {True: "true", False: "false"}.__getitem__
    elif pd.api.types.is_float_dtype(column.dtype):
        show = "{:.6g}".format
    elif pd.api.types.is_numeric_dtype(column.dtype):
        show = str
    known = column.notna().tolist()
    return [show(value) if is_known else "" for value, is_known in zip(column.tolist(), known, strict=True)]


def _text(value: Any) -> str:
    text = " ".join(printable(value, _LONGEST_FIELD).split())
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text


def rows_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """A frame's rows as plain JSON values; missing values are None."""
    plain = frame.astype(object)
    return [
        {str(name): value for name, value in row.items()} for row in plain.where(plain.notna(), None).to_dict("records")
    ]
