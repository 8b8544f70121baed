"""Prepares the charts of the page: the specification of the live chart, its numbers, and a picture of wide charts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import pandas as pd
from markupsafe import Markup

from msda_bench.errors import printable
from msda_bench_report.plots.parts import Chart
from msda_bench_report.plots.still import COLOURS, CONFIG, svg_text
from msda_bench_report.section import Figure

_MOST_DECIMALS, _LARGE = 6, 1e9
"""Numbers that need more decimals, or are larger, are shown in the form 1.234e+12."""


class Drawn(NamedTuple):
    """A figure as the templates write it."""

    id: str
    figure: Figure
    spec: dict[str, Any]
    values: pd.DataFrame
    still: Markup | None
    """The chart as SVG, for print and for browsers without scripts; None where the numbers stand in for it."""
    zooms: bool
    """Whether its horizontal axis can be panned and zoomed."""


def drawn(figure: Figure, within: str, shown: Sequence[str], *, is_still: bool = False) -> Drawn:
    """Draws a figure of the part of the page with this id; its chart shows the methods in `shown` at first.

    `is_still` draws it as a still picture, too.
    """
    spec: dict[str, Any] = figure.chart.to_dict(validate=False)
    spec.pop("config", None)
    spec.pop("$schema", None)
    for parameter in spec.get("params", ()):
        if parameter["name"] == "shown":
            parameter["value"] = [method for method in parameter["value"] if method in shown]
    still = _picture(spec) if is_still else None
    zooms = not figure.wide and _add_zoom(spec)
    return Drawn(f"{within}-{figure.name}", figure, spec, figure.values.dropna(axis=1, how="all"), still, zooms)


def picture(chart: Chart) -> Markup:
    """Draws a chart as SVG in the colours of the page."""
    return _picture(chart.to_dict(validate=False))


def _picture(spec: dict[str, Any]) -> Markup:
    svg = svg_text(spec, CONFIG)
    for colour, name in COLOURS.items():
        svg = svg.replace(f'"{colour}"', f'"{name}"')
    return Markup(svg)  # noqa: S704 - the library escapes what it writes


def _add_zoom(spec: dict[str, Any]) -> bool:
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
        slug, n = words, 1
        while slug in taken.values():
            n += 1
            slug = f"{words}-{n}"
        taken[name] = slug
    return taken


def shown_rows(values: pd.DataFrame) -> list[list[str]]:
    """The rows of a frame as text; all numbers of a column have equally many decimals."""
    columns = [_texts(list(values[name])) for name in values]
    return [list(row) for row in zip(*columns, strict=True)]


def _texts(column: Sequence[Any]) -> list[str]:
    decimals = _decimals([abs(float(value)) for value in column if _is_number(value)])
    return [_show(value, decimals) for value in column]


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
