"""Draws docs/figures/gains.svg: `python studies/registered/figure.py` takes the mean gains from the records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd

import msda_bench as mb
from reading import LARGEST, RESULTS, read

FIGURE = Path(__file__).parents[2] / "docs" / "figures" / "gains.svg"
COLUMNS = {"shared": "all ten tasks", f"shared, without {LARGEST}": f"without {LARGEST}"}
_ROW = 17


def gains(over_tasks: pd.DataFrame, margin: float) -> Any:
    """The mean gain of each method with its interval, with and without the task that gains most, and the margin.

    Args:
        over_tasks: the table of that title from `reading.read`.
        margin: the gain below which methods count as alike, in points.
    """
    rows = over_tasks[[*COLUMNS]].rename(columns=COLUMNS).rename_axis("method").reset_index()
    rows = rows.melt("method", var_name="tasks", value_name="text")
    rows[["gain", "low", "high"]] = rows["text"].str.extract(r"(.*) \[(.*), (.*)\]").astype(float)
    rows["row"] = rows["method"] + rows["tasks"]
    order = [method + tasks for method in over_tasks.index for tasks in COLUMNS.values()]
    title = [
        "mean gain over SRC in points of accuracy, with 95 % intervals that allow for shared examples",
        f"shaded: within the margin of {margin:g} points",
    ]
    y, x = alt.Y("row:N", sort=order, axis=None), alt.X("gain:Q", title=title)
    tasks = [*COLUMNS.values()]
    colours = alt.Scale(domain=tasks, range=["#0b5cad", "#b3541e"])
    shapes = alt.Scale(domain=tasks, range=["circle", "diamond"])
    colour = alt.Color("tasks:N", scale=colours, title=None, legend=alt.Legend(orient="top"))
    base = alt.Chart(rows).encode(y=y, color=colour)
    within = alt.Chart(pd.DataFrame({"low": [-margin], "high": [margin], "zero": [0]}))
    names = alt.Chart(rows[rows["tasks"] == tasks[0]]).mark_text(align="right", fontWeight="bold", dy=_ROW // 2)
    chart = alt.layer(
        within.mark_rect(opacity=0.12, color="#59636d").encode(x="low:Q", x2="high:Q"),
        within.mark_rule(strokeDash=[3, 3]).encode(x="zero:Q"),
        base.mark_rule(strokeWidth=2).encode(x="low:Q", x2="high:Q"),
        base.mark_point(filled=True, size=60, opacity=1).encode(
            x=x, shape=alt.Shape("tasks:N", scale=shapes, title=None)
        ),
        base.mark_text(align="left").encode(x=alt.value(505), text="text"),
        names.encode(y=y, x=alt.value(-12), text="method"),
    )
    padding = {"left": 8, "top": 5, "right": 48, "bottom": 5}  # for readers with wider fonts than the one that measures
    return chart.properties(width=490, height=_ROW * len(order), padding=padding)


if __name__ == "__main__":
    tables = read(*(mb.load_results(RESULTS / name) for name in ("registered", "sensitivity")))
    mb.plots.save(gains(tables["over tasks"], float(tables["whole"]["value"]["margin"])), FIGURE)
