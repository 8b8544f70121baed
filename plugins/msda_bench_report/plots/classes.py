"""Draws the accuracy on single classes."""

from __future__ import annotations

from pathlib import Path

import altair as alt
import pandas as pd

from msda_bench.analysis import PER_CLASS
from msda_bench_report.plots import parts
from msda_bench_report.plots.parts import Chart, tips

SPAN = 5
"""The minimum reach of a colour scale in percentage points, so that noise does not look like a difference."""


def classes(per_class: str | Path | pd.DataFrame) -> Chart:
    """Draws the accuracy of each method on each class, one panel per target.

    Colours show the difference from the mean of the shown methods.

    Args:
        per_class: a result folder, or a frame from `msda_bench.results.confusion.per_class`.

    Raises:
        ValueError: the frame is empty.
    """
    per_class = PER_CLASS.take(per_class)
    return parts.panels(PER_CLASS, per_class, ("experiment", "target"), _classes)


def _classes(rows: pd.DataFrame) -> Chart:
    found = rows[["method", "class", "n", "accuracy", "taken_for"]].sort_values("class", kind="stable")
    number, seen = alt.Text("accuracy:Q", format=".0f"), tips("method class n taken_for", "accuracy middle", ".1f")
    steps = parts.only_shown().transform_joinaggregate(middle="mean(accuracy)", groupby=["class"])
    steps = steps.transform_calculate(away="datum.accuracy - datum.middle")
    return parts.matrix(found, "class", number, seen, steps, SPAN)
