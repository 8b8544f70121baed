"""Maps of the sources' weights over the epochs, as in the paper: one row a source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup

from msda_bench.report.html.canvas import INK, MUTED, Canvas, label_below, label_rows, new_canvas, room_for
from msda_bench.report.html.figure import Figure
from msda_bench.report.html.sheet import Sheet
from msda_bench.report.html.svg import to_svg
from msda_bench.report.html.text import listed, plain
from msda_bench.report.html.trajectories import Courses, Trajectory
from msda_bench.suite.plan import Method

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = "viridis"
_ROW = 17
_HEAD = 22
_TOP, _RIGHT, _BOTTOM = 2, 40, 36
_ROWS = 48
"""Rows of a figure at most."""


@dataclass(frozen=True)
class HeatMaps:
    """All maps of an experiment, on one scale.

    Attributes:
        figures: one a target.
        low: the weight that has the scale's first colour.
        top: the weight that has its last.
        colours: the scale's, from 0 on, evenly spaced.
        n: seeds that the maps are means of, in words.
    """

    figures: tuple[Figure, ...]
    low: float
    top: float
    colours: tuple[str, ...]
    n: str


@dataclass(frozen=True)
class _Scale:
    low: float
    top: float


def heat_maps(sheet: Sheet, found: Mapping[str, Courses]) -> HeatMaps | None:
    """Draws the weights of each method that weighs single sources; None where none does."""
    weighing = {target: [pair for pair in pairs if pair[1].weighs] for target, pairs in found.items()}
    courses = [course for pairs in weighing.values() for _, course in pairs]
    if not courses:
        return None
    scale = _Scale(
        min(float(course.weights.min()) for course in courses), max(float(course.weights.max()) for course in courses)
    )
    figures = tuple(_figures(sheet, weighing, scale))
    seeds = sorted({course.n for course in courses})
    n = str(seeds[0]) if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    return HeatMaps(figures, scale.low, scale.top, _colours(), n)


def _figures(sheet: Sheet, found: Mapping[str, Courses], scale: _Scale) -> Iterator[Figure]:
    for number, (target, weighed) in enumerate(found.items()):
        shown = _fitting(weighed)
        if shown:
            left = [plain(method.name) for method, _ in weighed[len(shown) :]]
            note = f"Not drawn for want of room: {listed(left)}." if left else ""
            yield Figure(target, _draw(sheet, target, shown, scale, f"heat-{sheet.number}-{number}"), note)


def _fitting(weighed: Courses) -> Courses:
    rows = np.cumsum([len(course.groups) for _, course in weighed])
    return weighed[: max(1, int((rows <= _ROWS).sum()))]


def _draw(sheet: Sheet, target: str, weighed: Courses, scale: _Scale, name: str) -> Markup:
    from matplotlib.ticker import MaxNLocator

    rows = sum(len(course.groups) for _, course in weighed)
    canvas = new_canvas(_TOP + _BOTTOM + _HEAD * len(weighed) + _ROW * rows)
    left = room_for(group[0] for _, course in weighed for group in course.groups)
    # One pair of axes for all maps, its y in pixels: axes are what takes time to draw.
    axes = canvas.axes(left, _TOP, _RIGHT, _BOTTOM)
    above, places, labels = 0.0, [], []
    for method, course in weighed:
        above += _HEAD
        _draw_map(canvas, sheet, (method, course), scale, above)
        centres = [above + _ROW * (row + 0.5) for row in range(len(course.groups))]
        _write_last(axes, course, centres)
        places += centres
        labels += [canvas.say(plain(group[0])) for group in course.groups]
        above += _ROW * len(course.groups)
    axes.set_xlim(0.5, max(len(course.weights) for _, course in weighed) + 0.5)
    axes.set_ylim(above, 0)
    label_rows(axes, places, labels)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True, min_n_ticks=1))
    label_below(axes, "epoch")
    title = f"Weights of the sources over epochs at {target}: {listed(plain(method.name) for method, _ in weighed)}"
    return to_svg(canvas, name, title)


def _draw_map(canvas: Canvas, sheet: Sheet, weighed: tuple[Method, Trajectory], scale: _Scale, above: float) -> None:
    (axes,) = canvas.figure.axes
    method, course = weighed
    epochs, groups = course.weights.shape
    image = axes.imshow(
        course.weights.T,
        cmap=_COLOURS,
        vmin=scale.low,
        vmax=scale.top,
        aspect="auto",
        interpolation="none",
        extent=(0.5, epochs + 0.5, above + _ROW * groups, above),
    )
    canvas.mark(image, sheet.series(method))
    name = canvas.say(plain(method.name))
    axes.annotate(name, (0.5, above), (0, 4), "data", "offset points", color=INK, fontweight="bold")


def _write_last(axes: Axes, course: Trajectory, centres: list[float]) -> None:
    for weight, centre in zip(course.weights[-1], centres, strict=True):
        place = axes.get_yaxis_transform()
        axes.annotate(f"{weight:.2f}", (1, centre), (6, 0), place, "offset points", va="center", color=MUTED)


def _colours(steps: int = 16) -> tuple[str, ...]:
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    return tuple(to_hex(colormaps[_COLOURS](index / (steps - 1))) for index in range(steps))
