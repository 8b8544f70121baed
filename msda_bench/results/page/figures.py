"""Charts of the page: a specification for the live chart, the numbers, and a picture of the main ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pandas as pd
from markupsafe import Markup

from msda_bench.errors import printable
from msda_bench.results.plots.parts import Chart
from msda_bench.results.plots.still import COLOURS, CONFIG, svg_text

_ASIDE = 100
"""Pixels for the numbers next to the rows of a live chart, whose width is fitted without them."""


class Figure(NamedTuple):
    """One chart, with its numbers; `label` describes it for readers who do not see it."""

    id: str
    title: str
    label: str
    spec: dict[str, Any]
    values: pd.DataFrame
    still: Markup | None
    """The chart as SVG, for print and without scripts; None if the numbers have to do."""

    @property
    def wide(self) -> bool:
        """Whether it takes the page's width."""
        return self.still is not None


def figure(
    name: str, title: str, label: str, chart: Chart, values: pd.DataFrame, shown: Sequence[str], *, wide: bool = False
) -> Figure:
    """A figure from a chart that shows the methods in `shown` at first; those of a whole experiment are wide."""
    spec: dict[str, Any] = chart.to_dict(validate=False)
    spec.pop("config", None)
    spec.pop("$schema", None)
    for parameter in spec.get("params", ()):
        if parameter["name"] == "shown":
            parameter["value"] = [method for method in parameter["value"] if method in shown]
    still = picture(spec) if wide else None
    if not wide:
        _add_zoom(spec)
    if any(layer.get("encoding", {}).get("x") == {"value": "width"} for layer in spec.get("layer", ())):
        spec["padding"] = {"left": 5, "top": 5, "right": _ASIDE, "bottom": 5}
    return Figure(name, title, label, spec, values.dropna(axis=1, how="all"), still)


def picture(spec: dict[str, Any]) -> Markup:
    """A specification drawn as SVG in the page's own colours."""
    svg = svg_text(spec, CONFIG)
    for colour, name in COLOURS.items():
        svg = svg.replace(f'"{colour}"', f'"{name}"')
    return Markup(svg)  # noqa: S704 - the library escapes what it writes


def _add_zoom(spec: dict[str, Any]) -> None:
    """Makes the wheel (with Shift) and dragging move the horizontal axis of a chart with numbers on it.

    Vega-Lite then clips everything at the plot's edge, so charts with words next to the plot do without.
    """
    for layer in spec.get("layer", ()):
        across = layer.get("encoding", {}).get("x", {})
        if across.get("type") == "quantitative" and "data" not in layer and "aggregate" not in across:
            select = {"type": "interval", "encodings": ["x"], "zoom": "wheel![event.shiftKey]"}
            layer.setdefault("params", []).append({"name": "zoom", "select": select, "bind": "scales"})
            return


def shown_rows(values: pd.DataFrame) -> list[list[str]]:
    """The rows of a frame as text."""
    return [[_show(value) for value in row] for row in values.itertuples(index=False)]


def _show(value: Any) -> str:
    if pd.isna(value):
        return "-"
    if pd.api.types.is_bool(value):
        return "yes" if value else "no"
    if isinstance(value, str):
        return printable(value)
    number = float(value)
    return f"{number:,.0f}" if number.is_integer() and abs(number) < 1e9 else f"{number:.4g}"  # noqa: PLR2004
