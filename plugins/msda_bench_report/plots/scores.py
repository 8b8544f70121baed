"""Draws scores: means with intervals, every run, and the time of training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd

from msda_bench.analysis import LEADERBOARD, RUNS, main_rows, mean_text, name_of, runs_of
from msda_bench_report.plots import parts
from msda_bench_report.plots.outliers import clamped, interval, pointed
from msda_bench_report.plots.parts import BLUE, GREEN, GREY, ORANGE, ROW, WIDTH, Chart, layered, tips

GROUPS = {
    "best mean": GREEN,
    "not shown to be worse than the best": BLUE,
    "significantly worse than the best": ORANGE,
    "too few pairs for a test": GREY,
    "reference, not ranked": GREY,
}
"""How a method compares with the best one after Holm's correction, and its colour."""
_FIRST: dict[str, Any] = {"order": ("order", "first"), "reference": ("reference", "first")}
MOST_POINTS = 60
"""The maximum number of points per method in a panel; of more runs, evenly spaced ones by score are drawn."""


def points(runs: str | Path | pd.DataFrame) -> Chart:
    """Draws every run as a point and the mean of each method as a line across its row, one panel per target.

    Args:
        runs: a result folder, or a frame from `load_results`; runs that are not ok are skipped.

    Raises:
        ValueError: no run is ok.
    """
    runs = runs_of(runs)
    return parts.panels(RUNS, _ok(runs), ("experiment", "target"), _points)


def _ok(runs: pd.DataFrame) -> pd.DataFrame:
    found = runs[(runs["status"] == "ok").to_numpy()]
    return found.assign(method=found["method"].astype(object).map(name_of))


def _points(runs: pd.DataFrame) -> Chart:
    found = runs[["method", "reference", "seed", "score"]].assign(order=_order(runs))
    kept = pd.concat([_thinned(rows) for _, rows in found.groupby("method", sort=False)])
    form = ".2f" if parts.measure_of(runs).percent else ".3~g"
    across = alt.X("at:Q", title=parts.measure_of(runs).unit, scale=alt.Scale(zero=False, nice=False, padding=8))
    base = alt.Chart().encode(y=parts.rows_of())
    colour = alt.ColorValue(BLUE, condition=[{"test": "datum.reference", "value": GREY}])
    dots = base.mark_point(filled=True, size=34, opacity=0.75)
    dots = dots.encode(x=across, color=colour, shape=pointed(), tooltip=tips("method seed", "score"))
    ends: dict[str, Any] = {
        "low": "min(score)",
        "high": "max(score)",
        "at": "min(at)",
        "order": "min(order)",
        "n": "count()",
    }
    text = f"format(datum.low, '{form}') + (datum.n > 1 ? ' to ' + format(datum.high, '{form}') : '')"
    far = base.transform_filter("datum.far != 0").transform_aggregate(**ends, groupby=["method", "far"])
    far = far.transform_calculate(text=text).mark_text(dy=-9, align=alt.ExprRef("datum.far < 0 ? 'left' : 'right'"))
    # The mean is of the scores, not of the positions, since outliers are drawn at the edge.
    means: dict[str, Any] = {"mean": "mean(score)", "order": "min(order)"}
    means |= {"least": "min(least)", "most": "max(most)", "edge": "max(edge)"}
    mean = base.transform_aggregate(**means, groupby=["method"])
    mean = mean.transform_calculate(at="clamp(datum.mean, datum.least - datum.edge, datum.most + datum.edge)")
    mean = mean.mark_tick(thickness=2.5, size=16, color=ORANGE, opacity=1)
    mean = mean.encode(x="at:Q", tooltip=tips("method", "mean"))
    marks, steps = (dots, far.encode(x="at:Q", text="text:N"), mean), clamped("score", reach=3)
    return layered(kept, *marks, steps=steps, width=WIDTH, height=alt.Step(ROW - 2))


def _order(runs: pd.DataFrame) -> pd.Series[int]:
    """The place of each row's method in the chart: the best mean first, references last."""
    means = (
        (-parts.measure_of(runs).sign * runs["score"]).groupby([runs["reference"], runs["method"]], sort=False).mean()
    )
    order = means.reset_index().sort_values(["reference", "score"], kind="stable")["method"]
    return runs["method"].map({name: place for place, name in enumerate(order)})


def _thinned(rows: pd.DataFrame) -> pd.DataFrame:
    if len(rows) <= MOST_POINTS:
        return rows
    places = [round(place * (len(rows) - 1) / (MOST_POINTS - 1)) for place in range(MOST_POINTS)]
    return rows.sort_values("score", kind="stable").iloc[places]


def forest(leaderboard: str | Path | pd.DataFrame) -> Chart:
    """Draws the mean over targets of each method with its bootstrap interval, coloured by comparison with the best.

    Args:
        leaderboard: a result folder, or a frame from `leaderboard`.

    Raises:
        ValueError: no method has a mean.
    """
    leaderboard = LEADERBOARD.take(leaderboard)
    rows = main_rows(leaderboard)
    return parts.panels(LEADERBOARD, rows[rows["mean"].notna()], ("experiment",), _forest)


def _forest(rows: pd.DataFrame) -> Chart:
    found = rows[["method", "mean", "standard_error", "n_ok", "n_planned"]].assign(
        low=rows["mean_low"],
        high=rows["mean_high"],
        group=[_group(row) for _, row in rows.iterrows()],
        order=rows["rank"].astype(float).fillna(len(rows) + 1),
        text=[mean_text(row).replace("+-", "±") for row in rows.to_dict("records")],
        is_baseline=(rows["method"].astype(object) == rows["baseline"].astype(object)).to_numpy(),
    )
    seen = tips("method group n_ok n_planned", "mean standard_error low high")
    marks = interval(parts.measure_of(rows).unit, parts.kinds("group", GROUPS, found["group"]), seen)
    base = alt.Chart().transform_filter("datum.is_baseline").mark_rule(strokeDash=[4, 3], opacity=0.7).encode(x="at:Q")
    steps = clamped("mean", "low", "high")
    return layered(found, base, *marks, steps=steps, width=2 * WIDTH, height=alt.Step(ROW + 4))


def _group(row: pd.Series[Any]) -> str:
    """How the method of a leaderboard row compares with the best one."""
    best, same, worse, unknown, reference = GROUPS
    if row["reference"]:
        return reference
    if row["rank"] == 1:
        return best
    return unknown if pd.isna(row["bold_holm"]) else same if row["bold_holm"] else worse


def cost(runs: str | Path | pd.DataFrame) -> Chart:
    """Draws the mean training time of each method in seconds, the best mean score first; the scores are at the right.

    Args:
        runs: a result folder, or a frame from `load_results`; runs that are not ok are skipped.

    Raises:
        ValueError: no ok run has a time.
    """
    runs = runs_of(runs)
    found = _ok(runs)
    return parts.panels(RUNS, found[found["train_seconds"].notna()], ("experiment",), _cost)


def _cost(runs: pd.DataFrame) -> Chart:
    of = runs.assign(order=_order(runs)).groupby("method", sort=False)
    found = of.agg(seconds=("train_seconds", "mean"), steps=("steps", "mean"), score=("score", "mean"), **_FIRST)
    measure = parts.measure_of(runs)
    title = ["seconds of training a run, mean", f"at the right: mean {measure.unit}"]
    scale = parts.scale_of(found["seconds"], padding=10)
    across = alt.X("seconds:Q", title=title, scale=scale, axis=alt.Axis(tickCount=6))
    colour = alt.ColorValue(BLUE, condition=[{"test": "datum.reference", "value": GREY}])
    base = alt.Chart().encode(y=parts.rows_of())
    dots = base.mark_point(filled=True, size=90, opacity=1).encode(x=across, color=colour)
    form = ".2f" if measure.percent else ".4~g"
    text = base.mark_text(align="left", dx=12).encode(x=alt.value("width"), text=alt.Text("score:Q", format=form))
    marks = dots.encode(tooltip=tips("method", "seconds steps score")), text
    steps = parts.only_shown()
    return layered(found.reset_index(), *marks, steps=steps, width=2 * WIDTH, height=alt.Step(ROW + 4))
