"""Beyond the mean: intervals, the middle half of the runs, what adaptation gains, and what is left to the oracle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from msda_bench.report.figures_text import Unit
from msda_bench.report.html.board import NOTHING, columns
from msda_bench.report.html.canvas import LINE, Canvas, hue, label_below, label_rows, new_canvas, room_for
from msda_bench.report.html.figure import Figure
from msda_bench.report.html.sheet import Sheet
from msda_bench.report.html.svg import to_svg
from msda_bench.report.html.text import listed, plain, powers
from msda_bench.stats.analysis import Entry
from msda_bench.stats.bootstrap import Interval
from msda_bench.stats.scores import AVERAGE
from msda_bench.stats.summary import Summary
from msda_bench.suite.plan import Method

_ROW = 30
_TOP, _RIGHT, _BOTTOM = 4, 14, 38


@dataclass(frozen=True)
class Gain:
    """What a method gains over the baseline in one column.

    Attributes:
        text: mean and standard error.
        negative: whether the baseline is significantly better.
    """

    text: str
    negative: bool


@dataclass(frozen=True)
class BeyondRow:
    """One method.

    Attributes:
        method: the method.
        mean: its mean in the column that methods are ranked by.
        interval: the bootstrap interval of the mean.
        iqm: the interquartile mean.
        iqm_interval: its bootstrap interval.
        regret: what it lacks to the oracle.
        gains: over the baseline, column by column; empty without a baseline.
    """

    method: Method
    mean: str
    interval: str
    iqm: str
    iqm_interval: str
    regret: str
    gains: tuple[Gain, ...]


@dataclass(frozen=True)
class Beyond:
    """Of one experiment.

    Attributes:
        rows: methods, best first.
        columns: of the gains.
        baseline: what gains are over; None where there is no such method.
        oracle: what regrets are to; None where there is none.
        percent: the intervals' level.
        figure: means and interquartile means with their intervals; None where there is no interval, or no figures.
    """

    rows: tuple[BeyondRow, ...]
    columns: tuple[str, ...]
    baseline: str | None
    oracle: str | None
    percent: float
    figure: Figure | None


def beyond(sheet: Sheet) -> Beyond | None:
    """What there is to say beyond means; None where no method has a run."""
    entries = {method.name: sheet.analysis.entries[method.name, sheet.main] for method in sheet.methods}
    shown = [method for method in sheet.methods if entries[method.name].summary.n]
    if not shown:
        return None
    baseline = sheet.experiment.baseline
    drawn = [method for method in shown if method in sheet.drawn and entries[method.name].interval]
    return Beyond(
        rows=tuple(_row(sheet, method, entries[method.name]) for method in shown),
        columns=tuple(AVERAGE if column is None else column for column in columns(sheet)) if baseline else (),
        baseline=baseline,
        oracle=entries[shown[0].name].transfer.oracle,
        percent=100 * (1 - sheet.experiment.alpha),
        figure=_draw(sheet, drawn) if drawn and sheet.share.targets else None,
    )


def _row(sheet: Sheet, method: Method, entry: Entry) -> BeyondRow:
    unit, iqm = sheet.unit, entry.iqm
    baseline = sheet.experiment.baseline
    return BeyondRow(
        method=method,
        mean=NOTHING if entry.summary.mean is None else unit.show(entry.summary.mean),
        interval=_interval(unit, entry.interval),
        iqm=NOTHING if iqm is None else unit.show(iqm.value),
        iqm_interval=_interval(unit, iqm.interval if iqm else None),
        regret=_signed(unit, entry.transfer.regret),
        gains=tuple(_gain(sheet, method, column) for column in columns(sheet)) if baseline else (),
    )


def _gain(sheet: Sheet, method: Method, column: str | None) -> Gain:
    transfer = sheet.analysis.entries[method.name, column].transfer
    return Gain(_signed(sheet.unit, transfer.gain), bool(transfer.negative))


def _interval(unit: Unit, interval: Interval | None) -> str:
    return NOTHING if interval is None else f"[{unit.show(interval.low)}, {unit.show(interval.high)}]"


def _signed(unit: Unit, summary: Summary | None) -> str:
    if summary is None or summary.mean is None:
        return NOTHING
    error = "" if summary.standard_error is None else f" ± {unit.show(summary.standard_error)}"
    return f"{unit.show_signed(summary.mean)}{error}"


def _draw(sheet: Sheet, methods: Sequence[Method]) -> Figure:
    from matplotlib.ticker import MaxNLocator

    canvas = new_canvas(_TOP + _BOTTOM + _ROW * len(methods))
    names = [plain(method.name) for method in methods]
    axes = canvas.axes(room_for(names), _TOP, _RIGHT, _BOTTOM)
    axes.set_ylim(len(names) - 0.5, -0.5)
    label_rows(axes, range(len(names)), map(canvas.say, names))
    for row, method in enumerate(methods):
        _draw_method(canvas, sheet, method, row)
    axes.margins(x=0.05)
    axes.xaxis.set_major_locator(MaxNLocator(5, min_n_ticks=2))
    axes.grid(visible=True, axis="x", color=LINE, linewidth=0.8)
    axes.set_axisbelow(True)
    label_below(axes, powers(sheet.unit.label.removesuffix(", lower is better")))
    title = f"Means and interquartile means with bootstrap intervals of {listed(names)}"
    return Figure("", to_svg(canvas, f"beyond-{sheet.number}", title))


def _draw_method(canvas: Canvas, sheet: Sheet, method: Method, row: int) -> None:
    (axes,) = canvas.figure.axes
    entry = sheet.analysis.entries[method.name, sheet.main]
    scale, look, series = 10.0**-sheet.unit.exponent, sheet.look(method), sheet.series(method)
    iqm = entry.iqm
    estimates = [
        (entry.summary.mean, entry.interval, -0.14, 7.0),
        *([(iqm.value, iqm.interval, 0.2, 4.5)] if iqm else []),
    ]
    for (value, interval, offset, size), what in zip(estimates, ("mean", "interquartile mean"), strict=False):
        if value is None or interval is None:
            continue
        ends = [interval.low * scale, interval.high * scale]
        (bar,) = axes.plot(ends, [row + offset] * 2, color=hue(look.hue), linewidth=2 if offset < 0 else 1.1)
        canvas.mark(bar, series)
        face = hue(look.hue) if offset < 0 else "none"
        (mark,) = axes.plot(
            [value * scale],
            [row + offset],
            look.marker,
            markersize=size,
            markeredgecolor=hue(look.hue),
            markerfacecolor=face,
        )
        tip = f"{plain(method.name, 60)}: {what} {sheet.unit.show(value)} {_interval(sheet.unit, interval)}"
        canvas.mark(mark, series, [tip])
