"""Our runs beside a published table as they are printed, the verdict last."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.console import Console
from rich.table import Table
from rich.text import Text

from msda_bench.report.figures_text import Unit
from msda_bench.report.problems import problems_of
from msda_bench.report.screen import Screen
from msda_bench.report.verdict import verdict
from msda_bench.stats.scores import AVERAGE
from msda_bench.stats.summary import Summary
from msda_bench.stats.verification import CheckedCell, Verification

_METHOD_WIDTH = 22
_UNIT = Unit("accuracy in percent")


def print_verifications(console: Console, verifications: Sequence[Verification], unnamed: Sequence[str]) -> None:
    """Prints each table beside ours, how to read it, what is wrong with our runs, and one verdict line a table.

    Args:
        console: where to.
        verifications: one a table.
        unnamed: the experiments that name no table.
    """
    screen = Screen.of(console)
    for found in verifications:
        screen.line("")
        _print_table(screen, found)
        for name, style, lines in (
            ("note", "yellow", [*found.experiment.notes, *_unmatched(found)]),
            ("problem", "red", problems_of(found.analysis.scores)),
        ):
            for line in lines:
                screen.line(f"{name}: {line}", style)
    screen.line("")
    for name in unnamed:
        screen.line(f"note: {name} names no published table, and is not verified", "yellow")
    for found in verifications:
        screen.line(f"verdict: {verdict(found)}", "bold green" if found.status == "agrees" else "bold red")


def _print_table(screen: Screen, found: Verification) -> None:
    experiment, table = found.experiment, found.table
    screen.line(
        f"{experiment.name} ({experiment.dataset}) beside {table.where} of {table.name}: {_UNIT.label}, "
        f"mean {screen.plus_minus} standard error"
    )
    screen.paragraph(str(table.citation), "dim")
    screen.line("")
    screen.table(_table(screen, found))
    screen.line("")
    for paragraph in (*_bold(found), *_order(found), _legend(screen, found)):
        screen.paragraph(paragraph, "dim")


def _table(screen: Screen, found: Verification) -> Table:
    table = screen.new_table()
    table.add_column("method", max_width=_METHOD_WIDTH, overflow="fold")
    for head in ("published", "ours", "n", "difference", "z"):
        table.add_column(head, justify="right", overflow="fold")
    for column, block in groupby(found.cells, key=lambda cell: cell.published.column):
        table.add_section()
        table.add_row(AVERAGE if column is None else column, style="bold" if screen.styled else "")
        for cell in block:
            table.add_row(cell.method, *_figures(screen, cell, found), style="dim" if cell.reference else "")
    return table


def _figures(screen: Screen, cell: CheckedCell, found: Verification) -> Iterator[Text | str]:
    published = Summary(found.table.runs, cell.published.mean, cell.published.standard_error)
    yield _marked(screen, published, bold=cell.published.bold)
    if cell.entry is None:
        yield from ("not run", "", "", "")
        return
    yield _marked(screen, cell.entry.summary, bold=bool(cell.entry.bold_paper))
    yield f"{cell.entry.summary.n}/{len(found.experiment.seeds)}"
    yield _UNIT.show_signed(cell.gap.difference) if cell.gap else ""
    yield f"{cell.gap.z:+.1f}" if cell.gap else ""


def _marked(screen: Screen, summary: Summary, *, bold: bool) -> Text:
    mark = "" if screen.styled else "*" if bold else " "
    return Text(_UNIT.show_summary(summary, screen.plus_minus) + mark, style="bold" if bold and screen.styled else "")


def _bold(found: Verification) -> Iterator[str]:
    for sets in found.bold:
        if sets.ours is not None and not sets.agree:
            column = AVERAGE if sets.column is None else sets.column
            yield f"Bold at {column}: published {', '.join(sets.published)}; ours {', '.join(sets.ours)}."


def _order(found: Verification) -> Iterator[str]:
    order = found.order
    if order.inversions:
        yield f"Order by average: published {', '.join(order.published)}; ours {', '.join(order.ours)}."
    for turned in order.inversions:
        yield (
            f"{turned.first} - {turned.second}: published {turned.published:+.2f}, ours {turned.ours:+.2f}, "
            f"z {turned.gap.z:+.1f}: {'within' if turned.gap.is_near else 'beyond'} noise."
        )


def _legend(screen: Screen, found: Verification) -> str:
    text = f"Published: over {found.table.runs} runs. difference: ours - published; z: the same by its standard error"
    if any(cell.entry is not None and cell.entry.summary.n == 1 for cell in found.cells):
        text += ", for which the published runs' standard deviation stands in where n is 1"
    return f"{text}. {'bold' if screen.styled else '*'}: the bold set, by the paper's rule in ours."


def _unmatched(found: Verification) -> Iterator[str]:
    for what, names in (("methods", found.absent_methods), ("targets", found.absent_targets)):
        if names:
            yield f"published {what} that the suite has not: {', '.join(names)}"
    for what, names in (("methods", found.extra_methods), ("targets", found.extra_targets)):
        if names:
            yield f"{what} that the table has not, left out here: {', '.join(names)}"
    if found.absent_targets:
        yield "the averages are over other targets than published, so neither they nor the order are compared"
