"""Draws charts as still pictures without a browser, and writes the figures of commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd

from msda_bench.analysis import Across, replace_file
from msda_bench_report.plots.epochs import by_domain, weighing, weight_map
from msda_bench_report.plots.pairs import rank_chart
from msda_bench_report.plots.parts import Chart
from msda_bench_report.plots.settings import regrets, sensitivity

COLOURS = {"#010101": "var(--ink)", "#020202": "var(--muted)", "#030303": "var(--line)"}
"""Placeholders that the page replaces with the colours of its theme."""
_INK, _MUTED, _LINE = COLOURS
_FONT = "system-ui, -apple-system, Segoe UI, Roboto, Noto Sans, Liberation Sans, Arial, sans-serif"
CONFIG: dict[str, Any] = {
    "background": None,
    "font": _FONT,
    "view": {"stroke": None},
    "axis": {
        "labelColor": _MUTED,
        "titleColor": _MUTED,
        "gridColor": _LINE,
        "domainColor": _LINE,
        "tickColor": _LINE,
        "labelFontSize": 11,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
        "titlePadding": 8,
        "labelSeparation": 8,
    },
    "axisY": {"labelColor": _INK},
    "axisYQuantitative": {"labelColor": _MUTED},
    "legend": {"labelColor": _INK, "titleColor": _MUTED, "labelFontSize": 11, "titleFontWeight": "normal"},
    "header": {"labelColor": _INK, "labelFontSize": 11, "labelFontWeight": 600},
    "text": {"color": _INK, "fontSize": 11},
    "rule": {"color": _INK},
}
"""The style of charts; the page's script inserts the colours of the theme."""


def paper() -> dict[str, Any]:
    """The style of charts outside a page: dark on white."""
    config = json.dumps({**CONFIG, "background": "#ffffff"})
    for role, colour in zip(COLOURS, ("#1b1f23", "#59636d", "#dde1e4"), strict=True):
        config = config.replace(role, colour)
    found: dict[str, Any] = json.loads(config)
    return found


def svg_text(spec: dict[str, Any], config: dict[str, Any]) -> str:
    """Draws a Vega-Lite specification as SVG; identical specifications give identical bytes."""
    import vl_convert

    return vl_convert.vegalite_to_svg(json.dumps(spec), config={**config, "aria": False})


def svg_file(chart: Chart) -> str:
    """Draws a chart as a separate SVG file, dark on white."""
    return svg_text(chart.to_dict(validate=False), paper())


def write_ranks(folder: Path, across: Across) -> Path:
    """Draws the mean ranks over datasets as critical-difference.svg.

    Raises:
        StoreError: the folder cannot be written; an existing figure is intact.
    """
    return _write(folder, "critical-difference", rank_chart(across))


def write_weights(folder: Path, curves: pd.DataFrame) -> list[Path]:
    """Draws the final weights of each experiment in a frame from `load_curves` as weights-<experiment>.svg.

    For split sources it also draws the sums over their parts, as weights-<experiment>-by-domain.svg.

    Raises:
        StoreError: the folder cannot be written; an existing figure is intact.
    """
    weighed = weighing(curves)[["experiment", "method"]].drop_duplicates()
    written = []
    for name, own in curves.merge(weighed).groupby("experiment", observed=True, sort=False):
        written.append(_write(folder, f"weights-{name}", weight_map(own)))
        if (own["part_of"].astype(object) != own["source"].astype(object)).any():
            written.append(_write(folder, f"weights-{name}-by-domain", weight_map(by_domain(own))))
    return written


def write_settings(folder: Path, criteria: pd.DataFrame, points: pd.DataFrame) -> list[Path]:
    """Draws the regret of each criterion, and the score by each parameter, as selection-<experiment>.svg.

    The frames are from `criteria` and `sensitivity` in `msda_bench.results.criteria`.

    Raises:
        StoreError: the folder cannot be written; an existing figure is intact.
    """
    import altair as alt

    written = []
    for name, own in criteria.groupby("experiment", sort=False):
        chart, tried = regrets(own), points[points["experiment"] == name]
        if len(tried):
            below = sensitivity(tried)
            shown, below.params = below.params, alt.Undefined
            chart = alt.vconcat(chart, below)
            chart.params = shown
        written.append(_write(folder, f"selection-{name}", chart))
    return written


def _write(folder: Path, name: str, chart: Chart) -> Path:
    path = folder / f"{name}.svg"
    replace_file(path, svg_file(chart).encode())
    return path
