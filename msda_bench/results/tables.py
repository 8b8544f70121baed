"""Renders tables as text, in any of tabulate's formats, and frames as CSV; cleans text from outside."""

from __future__ import annotations

import csv
import functools
import io
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal

import pandas as pd
from tabulate import MIN_PADDING, tabulate

from msda_bench.errors import BenchError, printable
from msda_bench.results.formats import BOLD, MARKS, SECOND, SMALL
from msda_bench.results.report import BEST_MARK, Table
from msda_bench.suite.issues import hint, shown_value

WIDTH = 80
"""The line width of prose."""
TABLE_WIDTH = 100
"""The line width of a plain table if the output is no terminal."""
_LONGEST = 20_000
"""The maximum length of a paragraph; notes on many methods are long."""
_LONGEST_FIELD = 1_000_000
"""The maximum length of a text field; notes on many methods are long."""

_ROWS = 20_000
"""The number of rows of a CSV file that are made at once."""
_CELL_MARKS = (BEST_MARK, *MARKS.values())
_NOTHING, _BAR = "\ue006", "\ue007"
_MARKUP: Mapping[str, Sequence[tuple[str, str]]] = {
    "latex": ((r"\textbf{", "}"), (r"\underline{", "}"), (r"{\scriptsize ", "}")),
    "markdown": (("**", "**"), ("", ""), ("", "")),
}
"""How the best, the second best and small print begin and end."""


def check_methods(tables: Sequence[Table], methods: Sequence[str]) -> None:
    """Refuses methods that no table has.

    Raises:
        BenchError: no table has such a method.
    """
    if not tables:
        return
    known: dict[str, None] = {}
    for table in tables:
        for names in table.methods:
            known.update(dict.fromkeys(names))
    for name in methods:
        if name not in known:
            raise BenchError(f"--methods: {shown_value(name)} is not a method of any table here{hint(name, known)}")


def aligned(cells: Sequence[str]) -> list[str]:
    """Pads the cells of a column whose mark is shorter than that of others, so that their digits are aligned."""
    lengths = [_mark_length(cell) for cell in cells]
    longest = max(lengths, default=0)
    return [cell + " " * (longest - length) for cell, length in zip(cells, lengths, strict=True)]


def _mark_length(cell: str) -> int:
    return max((len(mark) for mark in _CELL_MARKS if cell.endswith(mark)), default=0)


def render(table: Table, form: str = "simple", width: int = TABLE_WIDTH, *, unicode: bool = False) -> str:
    """Renders a table in one of tabulate's formats; splits a wide plain table into several."""
    kind = _kind(form)
    cells = table.cells.map(lambda cell: _escaped(cell, form))
    cells.columns = [_escaped(str(name), form) for name in cells]
    if kind == "plain":
        parts = [_tabulated(part, form) for part in _parts(cells, width)]
        text = "\n\n".join(parts)
        return text.replace("+-", "±") if unicode else text
    text = _tabulated(cells, form)
    for (start, end), (begins, ends) in zip((BOLD, SECOND, SMALL), _MARKUP[kind], strict=True):
        text = text.replace(start, begins).replace(end, ends)
    text = re.sub(" {2,}", " ", text)  # markup has made the padding uneven
    if kind == "markdown":
        return text.replace("+-", "±")
    return text.replace("+-", r"$\pm$").replace(_NOTHING, "{}").replace(_BAR, _TEX[ord("|")])


def heading(table: Table, form: str) -> str:
    """The title above one of several tables; empty in LaTeX, where it would be read as text between them."""
    if _kind(form) == "latex":
        return ""
    return f"{_escaped(clean(table.title), form)}\n\n"


def latex_text(table: Table) -> str:
    """Writes a table for a LaTeX document that uses booktabs; its label is `tab:NAME`."""
    lines = [
        r"\begin{table}",
        r"  \centering",
        f"  \\caption{{{tex(clean(table.title))}}}",
        f"  \\label{{tab:{table.name}}}",
        render(table, "latex_booktabs"),
    ]
    for text in (" ".join(table.verdict), *table.notes):
        if text:
            lines.append(f"  \\par\\footnotesize {tex(clean(text))}")
    lines.append(r"\end{table}")
    return "\n".join(lines)


def markdown_text(table: Table) -> str:
    """Writes a table as GitHub's Markdown, with its title and notes."""
    title = _escaped(clean(table.title), "pipe")
    verdict = _escaped(clean(" ".join(table.verdict)), "pipe")
    parts = (f"### {title}", verdict, render(table, "pipe"), markdown_list(table.notes))
    return "\n\n".join(part for part in parts if part).replace("+-", "±")


def markdown_list(lines: Iterable[object]) -> str:
    """Writes sentences as a list in GitHub's Markdown."""
    return "\n".join(f"- {_escaped(clean(str(line)), 'pipe')}" for line in lines)


def clean(text: str) -> str:
    """Prose without characters that control a terminal or an editor."""
    return printable(text, _LONGEST)


def tex(text: str) -> str:
    """Escapes prose for LaTeX."""
    return text.translate(_TEX).replace("+-", r"$\pm$")


def paragraph(text: str, width: int = WIDTH, indent: str = "  ") -> str:
    """Wraps prose between words and indents all lines but the first."""
    return textwrap.fill(clean(text), width, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False)


def _tabulated(cells: pd.DataFrame, form: str) -> str:
    is_plain = _kind(form) == "plain"
    places = ["left"] + ["right"] * (len(cells.columns) - 1)
    columns = {}
    for name in cells:
        texts = cells[name].tolist()
        columns[name] = aligned(texts) if is_plain else texts
    text = tabulate(
        columns,
        headers="keys",
        tablefmt=form,
        disable_numparse=True,
        colalign=places,
        headersalign=places,
        preserve_whitespace=is_plain,
    )
    return "\n".join(line.rstrip() for line in str(text).splitlines())


def _parts(cells: pd.DataFrame, width: int) -> Iterator[pd.DataFrame]:
    """Splits the columns into tables of this width, each with the first column."""
    widths = []
    for name in cells:
        lengths = [len(cell) for cell in aligned(cells[name].tolist())]
        widths.append(max([len(str(name)) + MIN_PADDING, *lengths]))
    starts = [1]
    used = widths[0]
    for place in range(1, len(widths)):
        used += 2 + widths[place]
        if used > width and place > starts[-1]:
            starts.append(place)
            used = widths[0] + 2 + widths[place]
    for start, end in pairwise([*starts, len(widths)]):
        yield cells.iloc[:, [0, *range(start, end)]]


_NO_MARKUP = dict.fromkeys(range(0xE000, 0xE006))
_MARKDOWN = {ord(char): f"\\{char}" for char in r"\`*_[]<>|#"}


def _kind(form: str) -> Literal["plain", "markdown", "latex"]:
    """The kind of markup of one of tabulate's formats."""
    if form == "simple":
        return "plain"
    return "markdown" if form in {"github", "pipe"} else "latex"


def _escaped(text: str, form: str) -> str:
    kind = _kind(form)
    if kind == "plain":
        return text.translate(_NO_MARKUP)
    if kind == "markdown":
        return text.translate(_MARKDOWN)
    text = text.replace("|", _BAR)  # tabulate does not escape it
    if text.startswith(("[", "*")):
        return f"{_NOTHING}{text}"  # LaTeX would read [ or * after the end of a row as an option
    return text


_TEX = {
    **{ord(char): f"\\{char}" for char in "&%$#_{}"},
    ord("~"): r"\textasciitilde{}",
    ord("^"): r"\textasciicircum{}",
    ord("\\"): r"\textbackslash{}",
    ord("<"): r"\ensuremath{<}",
    ord(">"): r"\ensuremath{>}",
    ord("|"): r"\textbar{}",
}


def csv_text(frame: pd.DataFrame) -> str:
    r"""Writes a frame as CSV with a header line, safe to open in a spreadsheet.

    Floats have six significant digits, Booleans are true and false, missing values are empty fields, and lines end with
    `\n`. Texts are printable, runs of white space become one space, and a text that a spreadsheet would read as a
    formula gets a leading apostrophe.
    """
    head = io.StringIO()
    csv.writer(head, lineterminator="\n").writerow(map(_text, frame.columns))
    texts = [head.getvalue()]
    for start in range(0, len(frame), _ROWS):  # all fields of a million rows take gigabytes
        some = frame.iloc[start : start + _ROWS]
        part = io.StringIO()
        rows = zip(*(_fields(some[name]) for name in some), strict=True)
        csv.writer(part, lineterminator="\n").writerows(rows)  # half the time of pandas
        texts.append(part.getvalue())
    return "".join(texts)


def _fields(column: pd.Series[Any]) -> list[str]:
    show = _writer(column)
    known = column.notna().tolist()
    return [show(value) if is_known else "" for value, is_known in zip(column.tolist(), known, strict=True)]


def _writer(column: pd.Series[Any]) -> Callable[[Any], str]:
    """Writes the values of a column, other than missing ones."""
    if pd.api.types.is_bool_dtype(column.dtype):
        return {True: "true", False: "false"}.__getitem__
    if pd.api.types.is_float_dtype(column.dtype):
        return "{:.6g}".format
    if pd.api.types.is_numeric_dtype(column.dtype):
        return str
    return functools.cache(_text)


def _text(value: Any) -> str:
    text = " ".join(printable(value, _LONGEST_FIELD).split())
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text
