"""Panels of scores: every run a point, over them the mean and its standard error."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msda_bench.report.html.canvas import INK, LINE, Canvas, hue, label_below, label_rows, new_canvas, room_for
from msda_bench.report.html.figure import Figure
from msda_bench.report.html.sheet import Sheet
from msda_bench.report.html.svg import to_svg
from msda_bench.report.html.text import listed, plain, powers
from msda_bench.stats.scores import AVERAGE, Column
from msda_bench.suite.plan import Method

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROW = 26
_TOP, _RIGHT, _BOTTOM = 4, 14, 38
_SPREAD = 0.62
"""Height of a method's cloud of points, in rows."""
_GOLDEN = 0.6180339887498949


def point_panels(sheet: Sheet) -> Iterator[Figure]:
    """One panel a target, the mean over targets first."""
    if not sheet.share.targets:
        return
    columns: list[Column] = [*([None] if len(sheet.experiment.targets) > 1 else []), *sheet.targets]
    for number, column in enumerate(columns):
        if any(sheet.analysis.entries[method.name, column].summary.n for method in sheet.drawn):
            yield _panel(sheet, column, f"points-{sheet.number}-{number}")


def _panel(sheet: Sheet, column: Column, name: str) -> Figure:
    canvas = new_canvas(_TOP + _BOTTOM + _ROW * len(sheet.drawn))
    names = [plain(method.name) for method in sheet.drawn]
    axes = canvas.axes(room_for(names), _TOP, _RIGHT, _BOTTOM)
    axes.set_ylim(len(names) - 0.5, -0.5)
    label_rows(axes, range(len(names)), map(canvas.say, names))
    axes.hlines(range(len(names)), 0, 1, transform=axes.get_yaxis_transform(), colors=LINE, linewidth=0.8, zorder=0)
    for row, method in enumerate(sheet.drawn):
        _draw_method(canvas, axes, sheet, (row, method, column))
    _draw_scale(axes, sheet)
    shown = AVERAGE if column is None else column
    title = f"Scores of {listed(names)} at {shown}; each point is a run"
    return Figure(shown, to_svg(canvas, name, title))


def _draw_method(canvas: Canvas, axes: Axes, sheet: Sheet, where: tuple[int, Method, Column]) -> None:
    row, method, column = where
    unit, series = sheet.unit, sheet.series(method)
    scores = _thinned(sheet, method.name, column)
    if not scores:
        return
    values = [score * 10.0**-unit.exponent for _, score in scores]
    heights = [row + _SPREAD * ((seed * _GOLDEN) % 1 - 0.5) for seed, _ in scores]
    name = plain(method.name, 60)
    tips = [f"{name}, seed {seed}: {unit.show(score)}" for seed, score in scores]
    look = sheet.look(method)
    (points,) = axes.plot(values, heights, look.marker, color=hue(look.hue), markersize=5.5, alpha=0.7, mew=0)
    canvas.mark(points, series, tips)
    _draw_mean(canvas, axes, sheet, where)


def _draw_mean(canvas: Canvas, axes: Axes, sheet: Sheet, where: tuple[int, Method, Column]) -> None:
    row, method, column = where
    summary = sheet.analysis.entries[method.name, column].summary
    if summary.mean is None:
        return
    scale = 10.0**-sheet.unit.exponent
    mean, error = summary.mean * scale, (summary.standard_error or 0.0) * scale
    series = sheet.series(method)
    if error:
        (bar,) = axes.plot([mean - error, mean + error], [row, row], color=INK, linewidth=1.6, solid_capstyle="butt")
        canvas.mark(bar, series)
    tip = f"{plain(method.name, 60)}: {sheet.unit.show_summary(summary, '±')} (n = {summary.n})"
    (tick,) = axes.plot([mean], [row], "|", color=INK, markersize=11, mew=2)
    canvas.mark(tick, series, [tip])


def _thinned(sheet: Sheet, method: str, column: Column) -> list[tuple[int, float]]:
    """Seeds with their scores; of too many, some evenly spaced in the order of scores, both ends among them."""
    scores = sorted(sheet.analysis.scores.by_seed(method, column).items(), key=lambda item: (item[1], item[0]))
    most = sheet.share.points
    if len(scores) > most:
        scores = [scores[index * (len(scores) - 1) // (most - 1)] for index in range(most)]
    return [(seed, float(score)) for seed, score in scores]


def _draw_scale(axes: Axes, sheet: Sheet) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.margins(x=0.04)
    axes.xaxis.set_major_locator(MaxNLocator(5, min_n_ticks=2))
    axes.grid(visible=True, axis="x", color=LINE, linewidth=0.8)
    axes.set_axisbelow(True)
    label_below(axes, powers(sheet.unit.label.removesuffix(", lower is better")))
