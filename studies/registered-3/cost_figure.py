"""Draws docs/figures/gain-and-cost.svg from the records of the third measurement.

`PYTHONPATH=studies/registered:studies/registered-2 python studies/registered-3/cost_figure.py` draws it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import altair as alt

import msda_bench as mb
from reading import Texts
from third_reading import BOOSTING, LOGISTIC, RESULTS, STANDARDISED, read

FIGURE = Path(__file__).parents[2] / "docs" / "figures" / "gain-and-cost.svg"
_KINDS = {
    "network": "#0b5cad",
    "network, domains standardised": "#2f7d4f",
    "shallow": "#b3541e",
}
_ON_LEFT = {"logistic-SA", "logistic-CORAL", "SRC-domain", *STANDARDISED} - {"MCC-domain"}
_BELOW = {"MCC", "AdaBN"}


def gain_and_cost(tables: Texts) -> Any:
    """Each row's mean gain over logistic regression with its interval, against how much longer it trains.

    Args:
        tables: of `third_reading.read`.
    """
    over = tables["over logistic"]
    rows = over.rename_axis("method").reset_index()
    rows[["gain", "low", "high"]] = rows["gain"].str.extract(r"(.*) \[(.*), (.*)\]").astype(float)
    rows["times"] = rows["times"].astype(float)
    rows["kind"] = [_kind_of(method) for method in rows["method"]]
    rows["name"] = rows["method"].str.removesuffix("-domain").where(rows["kind"] != "shallow", rows["method"])
    tasks = tables["tasks"]["value"]["of these with shallow rows"]
    across = alt.X(
        "times:Q",
        scale=alt.Scale(type="log", nice=False, padding=50),
        title="time of training relative to logistic regression",
        axis=alt.Axis(values=[0.5, 1, 2, 5, 10, 20, 50, 100], format="~g", grid=True),
    )
    up = alt.Y("gain:Q", title=["gain over logistic regression in points,", f"95 % intervals; tasks: {tasks}"])
    colours = alt.Scale(domain=[*_KINDS], range=[*_KINDS.values()])
    colour = alt.Color("kind:N", scale=colours, title=None, legend=alt.Legend(orient="top", columnPadding=24))
    # A name stands where the points of other rows leave room.
    rows["side"] = [_side_of(method) for method in rows["method"]]
    base = alt.Chart(rows).encode(x=across, color=colour)
    names = base.encode(y="gain:Q", text="name")
    chart = alt.layer(
        base.mark_rule(opacity=0.5).encode(y=alt.Y("low:Q"), y2="high:Q"),
        base.mark_point(filled=True, size=60, opacity=1).encode(
            y=up, shape=alt.Shape("kind:N", scale=alt.Scale(domain=[*_KINDS]), title=None)
        ),
        names.transform_filter("datum.side == 'left'").mark_text(align="right", dx=-7, fontSize=10),
        names.transform_filter("datum.side == 'right'").mark_text(align="left", dx=7, fontSize=10),
        names.transform_filter("datum.side == 'below'").mark_text(dy=12, fontSize=10),
    )
    return chart.properties(width=620, height=380)


def _side_of(method: str) -> str:
    if method in _ON_LEFT:
        return "left"
    return "below" if method in _BELOW else "right"


def _kind_of(method: str) -> str:
    if method in (*LOGISTIC, "boosting", *BOOSTING):
        return "shallow"
    if method.endswith("-domain"):
        return "network, domains standardised"
    return "network"


if __name__ == "__main__":
    mb.plots.save(gain_and_cost(read(mb.load_results(RESULTS / "registered-3"))), FIGURE)
