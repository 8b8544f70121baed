"""Draws charts as still pictures without a browser; identical charts give identical bytes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import altair as alt

from msda_bench.results.door import argument
from msda_bench.results.files import replace_file
from msda_bench_report.plots.parts import Chart

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
    style: dict[str, Any] = json.loads(config)
    return style


def svg_text(spec: dict[str, Any], config: dict[str, Any]) -> str:
    """Draws a Vega-Lite specification as SVG."""
    import vl_convert

    return vl_convert.vegalite_to_svg(json.dumps(spec), config={**config, "aria": False})


def save(chart: Chart, path: str | Path) -> Path:
    """Writes a chart as an SVG file, dark on white, completely or not at all; returns its path.

    Raises:
        TypeError: `chart` is no chart, or `path` no path.
        ValueError: `path` does not end in .svg.
        StoreError: the file cannot be written; an existing one is intact.
    """
    if not isinstance(chart, alt.TopLevelMixin):
        raise TypeError(f"chart: must be an Altair chart, not a {type(chart).__name__}")
    file = Path(argument("path", path, str | Path))
    if file.suffix.lower() != ".svg":
        raise ValueError(f"path: must end in .svg, not {file.name!r}; `chart.save` of Altair writes other formats")
    replace_file(file, svg_text(chart.to_dict(validate=False), paper()).encode())
    return file
