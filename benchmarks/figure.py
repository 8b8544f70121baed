"""The figure of costs by k."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from benchmarks.results import Results
from benchmarks.scaling import fit

BATCH = 256
RC: dict[Any, Any] = {
    "svg.hashsalt": "msda-bench",  # and no date below: the same measurements give the same bytes
    "svg.fonttype": "none",
    "font.size": 9,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": "#e5e5e5",
    "legend.frameon": False,
}


class Style(NamedTuple):
    """Of a line: Okabe and Ito's colours, with a marker and dashes of its own for print in grey."""

    color: str
    marker: str
    dashes: str


STYLES = (
    Style("#0072B2", "o", "-"),
    Style("#D55E00", "s", "--"),
    Style("#000000", "^", "-."),
    Style("#009E73", "D", ":"),
    Style("#CC79A7", "v", "-"),
)
"""In the order of the lines; more lines than these are not drawn."""


def write_figure(path: Path, results: Results) -> None:
    """Draws a step's cost by the number of sources and sharpmax's beside others'; nothing if either is missing."""
    steps, functions = results.by_count("sources"), results.by_count("sharpmax", f", batch {BATCH}")
    if not (steps and functions):
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    unit = "CPU ms" if results.clock == "cpu" else "wall ms"
    with rc_context(RC):
        figure = Figure(figsize=(9, 3.6), layout="constrained")
        left, right = figure.subplots(1, 2)
        _draw_steps(left, steps)
        left.set(title="A training step, and a + b k + c k² fitted", xlabel="sources k", ylabel=f"{unit} a step")
        _draw_functions(right, functions)
        right.set(title=f"Forward and backward, batch {BATCH}", xlabel="scores k", ylabel=f"{unit} a call")
        figure.savefig(path, format="svg", metadata={"Date": None})


def _draw_steps(axes: Axes, lines: Mapping[str, Mapping[int, float]]) -> None:
    for (name, found), style in zip(lines.items(), STYLES, strict=False):
        growth = fit(list(found), list(found.values()))
        _points(axes, found, style, label=name)
        _line(axes, list(found), [growth.at(k) for k in found], style)
    _scale(axes, [k for found in lines.values() for k in found])


def _draw_functions(axes: Axes, lines: Mapping[str, Mapping[int, float]]) -> None:
    for (name, found), style in zip(lines.items(), STYLES, strict=False):
        _points(axes, found, style, label=name)
        _line(axes, list(found), list(found.values()), style)
    _scale(axes, [k for found in lines.values() for k in found])


def _points(axes: Axes, found: Mapping[int, float], style: Style, label: str) -> None:
    milliseconds = [seconds * 1e3 for seconds in found.values()]
    axes.plot(list(found), milliseconds, style.marker, color=style.color, markersize=5, label=label)


def _line(axes: Axes, counts: Sequence[int], seconds: Sequence[float], style: Style) -> None:
    axes.plot(counts, [value * 1e3 for value in seconds], style.dashes, color=style.color, lw=1.3)


def _scale(axes: Axes, counts: Sequence[int]) -> None:
    """Logarithmic axes with plain numbers."""
    axes.set(xscale="log", yscale="log")
    ticks = sorted(set(counts))
    axes.set_xticks(ticks, [str(k) for k in ticks])
    low, high = axes.get_ylim()
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 50 * low else (1,)))
    axes.yaxis.set_major_formatter("{x:g}")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_locator(NullLocator())
    axes.legend()
