"""The figure of costs by k."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import altair as alt
import pandas as pd

from benchmarks.results import Results
from benchmarks.scaling import fit
from msda_bench_report.plots import save
from msda_bench_report.plots.parts import layered, legend, look, names

BATCH = 256


def write_figure(path: Path, results: Results) -> None:
    """Draws a step's cost by the number of sources and sharpmax's beside others'; nothing if either is missing."""
    steps, functions = results.by_count("sources"), results.by_count("sharpmax", f", batch {BATCH}")
    if not (steps and functions):
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    unit = "CPU ms" if results.clock == "cpu" else "wall ms"
    fitted = {name: fit(list(found), list(found.values())) for name, found in steps.items()}
    lines = {name: {k: fitted[name].at(k) for k in found} for name, found in steps.items()}
    left = _panel(steps, lines, "sources k", f"{unit} a step", "A training step, and a + b k + c k² fitted")
    right = _panel(functions, functions, "scores k", f"{unit} a call", f"Forward and backward, batch {BATCH}")
    both = alt.hconcat(left, right).resolve_scale(color="independent", strokeDash="independent")
    save(both, path)


def _panel(
    points: Mapping[str, Mapping[int, float]],
    lines: Mapping[str, Mapping[int, float]],
    across: str,
    up: str,
    title: str,
) -> alt.LayerChart:
    """Points and lines on logarithmic axes."""
    rows = [
        (name, k, 1e3 * seconds, 1e3 * lines[name][k]) for name, found in points.items() for k, seconds in found.items()
    ]
    frame = pd.DataFrame(rows, columns=["name", "k", "measured", "line"])
    ticks = sorted(frame["k"].unique().tolist())
    x = alt.X("k:Q", title=across, scale=alt.Scale(type="log", nice=False, padding=12), axis=alt.Axis(values=ticks))
    y = alt.Y("measured:Q", title=up, scale=alt.Scale(type="log"))
    known = look("name", names(frame, "name"), legend(2))
    dots = alt.Chart().mark_point(filled=True, size=45, opacity=1).encode(x=x, y=y, color=known["color"])
    line = alt.Chart().mark_line(strokeWidth=1.5).encode(x=x, y="line:Q", **known)
    return layered(frame, dots, line).properties(width=340, height=220, title=title)
