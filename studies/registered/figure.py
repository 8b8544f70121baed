"""Draws docs/figures/gains.svg from the records of both measurements.

`PYTHONPATH=studies/registered-2 python studies/registered/figure.py` draws it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd

import msda_bench as mb
from reading import LARGEST, RESULTS, Texts, read
from second_reading import read as read_second

FIGURE = Path(__file__).parents[2] / "docs" / "figures" / "gains.svg"
_ROW = 17


def gains(first: Texts, second: Texts) -> Any:
    """The mean gain of each method over no adaptation and over batch normalisation alone, and the margin.

    Args:
        first: the tables of `reading.read`.
        second: those of `second_reading.read`.
    """
    margin = float(first["whole"]["value"]["margin"])
    columns = {
        "shared": f"over SRC, {first['whole']['value']['counted']} tasks",
        f"shared, without {LARGEST}": f"without {LARGEST}",
        "gain": f"over AdaBN, {second['whole, B']['value']['tasks']} tasks",
    }
    over_tasks = first["over tasks"].join(second["over AdaBN, B"]["gain"])
    rows = over_tasks[[*columns]].rename(columns=columns).rename_axis("method").reset_index()
    rows = rows.melt("method", var_name="tasks", value_name="text")
    rows[["gain", "low", "high"]] = rows["text"].str.extract(r"(.*) \[(.*), (.*)\]").astype(float)
    rows["row"] = rows["method"] + rows["tasks"]
    order = [method + tasks for method in over_tasks.index for tasks in columns.values()]
    title = [
        "mean gain in points of accuracy, with 95 % intervals that allow for shared examples",
        f"shaded: within the margin of {margin:g} points",
    ]
    y, x = alt.Y("row:N", sort=order, axis=None), alt.X("gain:Q", title=title)
    tasks = [*columns.values()]
    colours = alt.Scale(domain=tasks, range=["#0b5cad", "#b3541e", "#2f7d4f"])
    shapes = alt.Scale(domain=tasks, range=["circle", "diamond", "square"])
    colour = alt.Color("tasks:N", scale=colours, title=None, legend=alt.Legend(orient="top", columnPadding=24))
    base = alt.Chart(rows).encode(y=y, color=colour)
    within = alt.Chart(pd.DataFrame({"low": [-margin], "high": [margin], "zero": [0]}))
    names = alt.Chart(rows[rows["tasks"] == tasks[1]]).mark_text(align="right", fontWeight="bold")
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
    one, longer, two = (mb.load_results(RESULTS / name) for name in ("registered", "sensitivity", "registered-2"))
    mb.plots.save(gains(read(one, longer), read_second(one, two)), FIGURE)
