"""The figures and sections of the report page: what they are made of and from, and how the page holds them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import pandas as pd
from markupsafe import Markup

from msda_bench.errors import printable
from msda_bench.results.runs import ok_runs
from msda_bench.results.words import name_of
from msda_bench.store.shift import Shift
from msda_bench.suite.plan import Experiment
from msda_bench_report.plots.parts import COLOURS, CONFIG, svg_text
from msda_bench_report.plots.vega import Spec

_STILL = 300
"""The width of a plot in a still picture, in pixels, with which its words can be read where a phone scales it."""
_PADDING = {"left": 16, "right": 24, "top": 5, "bottom": 5}
"""A reader's font may be wider than the one with which the text was measured."""
_MOST_DECIMALS, _LARGE = 6, 1e9
"""Numbers that need more decimals, or are larger, are shown in the form 1.234e+12."""


class Figure(NamedTuple):
    """A chart with its title, and its numbers for readers without scripts; `wide` takes the page's width.

    `name` is of letters, digits and hyphens, and the experiment's alone; `label` is for screen readers, and `text` what
    the chart says. The parameter `shown` of the chart follows the reader's choice of methods.
    """

    name: str
    title: str
    label: str
    chart: Spec
    values: pd.DataFrame
    wide: bool = False
    text: str = ""


class Section(NamedTuple):
    """A folded section of charts, or a table without one; otherwise its text tells why it is empty.

    `name` is of letters, digits and hyphens, and the experiment's alone; `undrawn` targets have no figure.
    """

    name: str
    title: str
    text: str
    figures: tuple[Figure, ...] = ()
    table: pd.DataFrame | None = None
    undrawn: int = 0


@dataclass(frozen=True)
class Results:
    """What is known of one experiment: its rows of each frame that a function of `msda_bench` makes.

    `targets` are those with figures, and what they are called in names of figures. `runs` have the selected settings.
    `curves`, means over seeds from `by_epoch`, and `classes` are of these targets; `candidates` are from `sensitivity`.
    `shift` is the picture of the inputs, if the folder has it. `baseline` is the method that each is compared with, and
    None where all pairs are compared.
    """

    targets: Mapping[str, str]
    experiment: Experiment
    shift: Shift | None
    runs: pd.DataFrame
    leaderboard: pd.DataFrame
    comparisons: pd.DataFrame
    curves: pd.DataFrame
    classes: pd.DataFrame
    criteria: pd.DataFrame
    candidates: pd.DataFrame
    baseline: str | None = None

    @cached_property
    def ok(self) -> pd.DataFrame:
        """The runs that are ok."""
        return ok_runs(self.runs).astype({"method": object})

    def by_target(
        self,
        name: str,
        label: str,
        rows: pd.DataFrame,
        draw: Callable[[pd.DataFrame], Spec],
        values: Callable[[pd.DataFrame], pd.DataFrame],
        title: str = "",
    ) -> tuple[Figure, ...]:
        """A figure for each target that has rows, with the numbers that `values` computes from them.

        Its title is the name of the target, after `title` if a section has several figures per target.
        """
        figures = []
        for target, slug in self.targets.items():
            own = rows[(rows["target"] == target).to_numpy()]
            if len(own):
                about = f"{label} at {name_of(target)}"
                figures.append(Figure(f"{name}-{slug}", f"{title}{target}", about, draw(own), values(own)))
        return tuple(figures)

    def section(self, name: str, title: str, text: str, figures: tuple[Figure, ...]) -> Section:
        """A section of figures of single targets, which tells how many targets have none."""
        undrawn = len(self.experiment.targets) - len(self.targets) if figures else 0
        return Section(name, title, text, figures, undrawn=undrawn)


Make: TypeAlias = Callable[[Results], Section | None]
"""Makes a section of an experiment; None where it has nothing to say."""


class Drawn(NamedTuple):
    """A figure as the templates write it."""

    id: str
    figure: Figure
    spec: Spec
    values: pd.DataFrame
    still: Markup | None
    """The chart as SVG, for print and for browsers without scripts; None where the numbers stand in for it."""
    zooms: bool
    """Whether its horizontal axis can be panned and zoomed."""


def drawn(figure: Figure, within: str, shown: Sequence[str], *, is_still: bool = False) -> Drawn:
    """Draws a figure of the part of the page with this id; its chart shows the methods in `shown` at first.

    `is_still` draws it as a still picture, too.
    """
    spec = figure.chart
    for parameter in spec.get("params", ()):
        if parameter["name"] == "shown":
            parameter["value"] = [method for method in parameter["value"] if method in shown]
    still = _picture(spec) if is_still else None
    zooms = not figure.wide and _add_zoom(spec)
    return Drawn(f"{within}-{figure.name}", figure, spec, figure.values.dropna(axis=1, how="all"), still, zooms)


def picture(chart: Spec) -> Markup:
    """Draws a chart as SVG in the colours of the page, for an element that says what it shows."""
    return _picture(chart).replace("<svg ", Markup('<svg aria-hidden="true" '), 1)


def _picture(spec: Spec) -> Markup:
    svg = svg_text(_narrowed(spec) | {"padding": _PADDING}, CONFIG)
    for colour, name in COLOURS.items():
        svg = svg.replace(f'"{colour}"', f'"{name}"')
    return Markup(svg)  # noqa: S704 - the library escapes what it writes


def _narrowed(spec: Spec) -> Spec:
    """The chart, or the charts one above the other, with plots that are no wider than `_STILL`."""
    if "vconcat" in spec:
        return spec | {"vconcat": [_narrowed(part) for part in spec["vconcat"]]}
    width = spec.get("width")
    if not isinstance(width, int | float):
        return spec
    return spec | {"width": min(width, _STILL)}


def _add_zoom(spec: Spec) -> bool:
    """Adds zooming (Shift and the wheel) and panning (dragging) to a horizontal axis of numbers, if there is one.

    Vega-Lite then clips everything at the plot's edge, so charts with words next to the plot do not zoom.

    Returns:
        Whether the chart zooms.
    """
    for layer in spec.get("layer", ()):
        across = layer.get("encoding", {}).get("x", {})
        if across.get("type") == "quantitative" and "data" not in layer and "aggregate" not in across:
            select = {"type": "interval", "encodings": ["x"], "zoom": "wheel![event.shiftKey]"}
            layer.setdefault("params", []).append({"name": "zoom", "select": select, "bind": "scales"})
            return True
    return False


def slugs(names: Iterable[str]) -> dict[str, str]:
    """Turns names into parts of ids: letters, digits and hyphens, all different."""
    taken: dict[str, str] = {}
    for name in dict.fromkeys(names):
        letters = "".join(char if char.isascii() and char.isalnum() else "-" for char in name[:60])
        words = letters.strip("-").lower() or "x"
        slug = words
        n = 1
        while slug in taken.values():
            n += 1
            slug = f"{words}-{n}"
        taken[name] = slug
    return taken


def shown_rows(values: pd.DataFrame) -> list[list[str]]:
    """The rows of a frame as text; all numbers of a column have equally many decimals."""
    columns = []
    for name in values:
        column = values[name].tolist()
        decimals = _decimals([abs(float(value)) for value in column if _is_number(value)])
        columns.append([_show(value, decimals) for value in column])
    return [list(row) for row in zip(*columns, strict=True)]


def _decimals(sizes: Sequence[float]) -> int | None:
    """The decimals that show four digits of the largest number; None if the smallest would then show no digit."""
    if all(size.is_integer() for size in sizes):
        return 0
    decimals = max(0, 4 - math.ceil(math.log10(max(sizes))))
    least = min(size for size in sizes if size)
    return decimals if decimals <= _MOST_DECIMALS and round(least, decimals) else None


def _show(value: Any, decimals: int | None) -> str:
    if _is_number(value):
        return f"{value:.4g}" if decimals is None or abs(value) >= _LARGE else f"{value:,.{decimals}f}"
    if pd.api.types.is_bool(value):
        return "yes" if value else "no"
    return "-" if pd.isna(value) else printable(value)


def _is_number(value: Any) -> bool:
    return (pd.api.types.is_float(value) or pd.api.types.is_integer(value)) and math.isfinite(value)
