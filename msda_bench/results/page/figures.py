"""Charts as the page holds them: a specification to be drawn live, a still picture, and the numbers."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from markupsafe import Markup

from msda_bench.errors import printable
from msda_bench.results.plots.parts import Chart
from msda_bench.results.plots.still import COLOURS, CONFIG, svg_text

MOST_VALUES = 200
"""Rows of numbers under a figure."""
_ASIDE = 100
"""Pixels for the numbers beside the rows of a live chart, which is fitted to the page without them."""


@dataclass(frozen=True)
class Figure:
    """One chart.

    Attributes:
        id: in the page.
        title: over it.
        label: what it shows, for those who do not see it.
        spec: Vega-Lite's specification, plain JSON.
        still: the same as SVG, drawn here, with the methods that are shown at first.
        values: its numbers; at most `MOST_VALUES` rows.
        left_out: rows beyond those.
        wide: whether it takes the page's width.
    """

    id: str
    title: str
    label: str
    spec: dict[str, Any]
    still: Markup
    values: pd.DataFrame
    left_out: int
    wide: bool

    def rows(self) -> Iterator[list[str]]:
        """The numbers as text."""
        return shown_rows(self.values)


def shown_rows(values: pd.DataFrame) -> Iterator[list[str]]:
    """The rows of a frame as text."""
    for row in values.itertuples(index=False):
        yield [show_value(value) for value in row]


def figure(
    name: str, title: str, label: str, chart: Chart, values: pd.DataFrame, shown: Sequence[str], *, wide: bool = False
) -> Figure:
    """A figure from a chart.

    Args:
        name: its id.
        title: over it.
        label: what it shows.
        chart: of `msda_bench.plots`.
        values: its numbers.
        shown: the methods that are shown at first.
        wide: whether it takes the page's width.
    """
    spec: dict[str, Any] = chart.to_dict(validate=False)
    spec.pop("config", None)
    spec.pop("$schema", None)
    for parameter in spec.get("params", ()):
        if parameter["name"] == "shown":
            parameter["value"] = [method for method in parameter["value"] if method in shown]
    still = _still(spec)
    if not wide:
        _add_zoom(spec)
    if any(layer.get("encoding", {}).get("x") == {"value": "width"} for layer in spec.get("layer", ())):
        spec["padding"] = {"left": 5, "top": 5, "right": _ASIDE, "bottom": 5}
    return Figure(name, title, label, spec, still, values.head(MOST_VALUES), max(0, len(values) - MOST_VALUES), wide)


def show_value(value: Any) -> str:
    """A number or name in a cell."""
    if value is None or value is pd.NA or value != value:  # noqa: PLR0124 - NaN
        return "-"
    if isinstance(value, bool) or pd.api.types.is_bool(value):
        return "yes" if value else "no"
    if isinstance(value, str):
        return printable(value)
    number = float(value)
    return f"{number:,.0f}" if number.is_integer() and abs(number) < 1e9 else f"{number:.4g}"  # noqa: PLR2004


def _still(spec: dict[str, Any]) -> Markup:
    svg = svg_text(_without_tips(copy.deepcopy(spec)), CONFIG)
    for colour, name in COLOURS.items():
        svg = svg.replace(f'"{colour}"', f'"{name}"')
    return Markup(svg)  # noqa: S704 - the library escapes what it writes


def _without_tips(spec: dict[str, Any]) -> dict[str, Any]:
    """Without the invisible marks that live charts need to be pointed at."""
    for part in (spec, spec.get("spec", {})):
        if "layer" in part:
            part["layer"] = [one for one in part["layer"] if not _is_tip(one)]
    return spec


def _is_tip(layer: dict[str, Any]) -> bool:
    mark = layer.get("mark", {})
    return isinstance(mark, dict) and mark.get("opacity") == 0 and "tooltip" in layer.get("encoding", {})


def _add_zoom(spec: dict[str, Any]) -> None:
    """Lets the wheel (with Shift) and dragging move the horizontal axis of a chart that has numbers there.

    Vega-Lite then cuts everything at the plot's edge, so charts with words beside it do without.
    """
    for layer in spec.get("layer", ()):
        across = layer.get("encoding", {}).get("x", {})
        if across.get("type") == "quantitative" and "data" not in layer and "aggregate" not in across:
            select = {"type": "interval", "encodings": ["x"], "zoom": "wheel![event.shiftKey]"}
            layer.setdefault("params", []).append({"name": "zoom", "select": select, "bind": "scales"})
            return
