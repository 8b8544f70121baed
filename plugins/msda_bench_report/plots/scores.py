"""Draws scores: means with intervals, every run, single classes, the time of training, and how settings are chosen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd

from msda_bench.results.compare import main_rows
from msda_bench.results.criteria import ALL
from msda_bench.results.frame import AVERAGE, runs_of
from msda_bench.results.report import mean_text
from msda_bench.results.words import name_of
from msda_bench.suite.plan import ORACLE
from msda_bench_report.plots import parts
from msda_bench_report.plots.parts import BLUE, GREEN, GREY, KINDS, ORANGE, ROW, WIDTH, Chart, layered, tips

_GROUPS = {
    "best mean": GREEN,
    "not shown to be worse than the best": BLUE,
    "significantly worse than the best": ORANGE,
    "too few pairs for a test": GREY,
    "reference, not ranked": GREY,
}
"""How a method compares with the best one after Holm's correction, and its colour."""
_MOST_POINTS = 60
"""The maximum number of points per method in a panel; of more runs, evenly spaced ones by score are drawn."""
_SPAN = 5
"""The minimum reach of the colours of classes in percentage points, so that noise does not look like a difference."""


def points(runs: str | Path | pd.DataFrame) -> Chart:
    """Draws every run as a point and the mean of each method as a line across its row, one panel per target.

    Args:
        runs: a result folder, or a frame from `load_results`; runs that are not ok are skipped.

    Raises:
        ValueError: no run is ok.
    """
    return parts.panels("runs", _ok(runs_of(runs)), ("experiment", "target"), _points)


def _ok(runs: pd.DataFrame) -> pd.DataFrame:
    ok = runs[(runs["status"] == "ok").to_numpy()]
    return ok.assign(method=ok["method"].astype(object).map(name_of))


def _points(runs: pd.DataFrame) -> Chart:
    rows = runs[["method", "reference", "seed", "score"]].assign(order=_order(runs))
    rows = pd.concat([_thinned(runs) for _, runs in rows.groupby("method", sort=False)])
    measure = parts.measure_of(runs)
    across = alt.X("at:Q", title=measure.unit, scale=alt.Scale(zero=False, nice=False, padding=8))
    base = alt.Chart().encode(y=parts.rows_of())
    dots = base.mark_point(filled=True, size=34, opacity=0.75)
    dots = dots.encode(x=across, color=parts.OF_REFERENCE, shape=parts.pointed(), tooltip=tips("method seed", "score"))
    form = ".2f" if measure.percent else ".3~g"
    text = f"format(datum.low, '{form}') + (datum.n > 1 ? ' to ' + format(datum.high, '{form}') : '')"
    ends: dict[str, Any] = {"low": "min(score)", "high": "max(score)", "at": "min(at)"}
    ends |= {"order": "min(order)", "n": "count()"}
    far = base.transform_filter("datum.far != 0").transform_aggregate(**ends, groupby=["method", "far"])
    far = far.transform_calculate(text=text).mark_text(dy=-9, align=alt.ExprRef("datum.far < 0 ? 'left' : 'right'"))
    # The mean is of the scores, not of the positions, since outliers are drawn at the edge.
    means: dict[str, Any] = {"mean": "mean(score)", "order": "min(order)"}
    means |= {"least": "min(least)", "most": "max(most)", "edge": "max(edge)"}
    mean = base.transform_aggregate(**means, groupby=["method"])
    mean = mean.transform_calculate(at="clamp(datum.mean, datum.least - datum.edge, datum.most + datum.edge)")
    mean = mean.mark_tick(thickness=2.5, size=16, color=ORANGE, opacity=1)
    mean = mean.encode(x=alt.X("at:Q"), tooltip=tips("method", "mean"))
    marks = dots, far.encode(x=alt.X("at:Q"), text=alt.Text("text:N")), mean
    return layered(rows, *marks, steps=parts.clamped("score", reach=3), width=WIDTH, height=alt.Step(ROW - 2))


def _order(runs: pd.DataFrame) -> pd.Series[int]:
    losses = -parts.measure_of(runs).sign * runs["score"]
    means = losses.groupby([runs["reference"], runs["method"]], sort=False).mean().reset_index()
    order = means.sort_values(["reference", "score"], kind="stable")["method"]
    return runs["method"].map({name: place for place, name in enumerate(order)})


def _thinned(rows: pd.DataFrame) -> pd.DataFrame:
    if len(rows) <= _MOST_POINTS:
        return rows
    places = [round(place * (len(rows) - 1) / (_MOST_POINTS - 1)) for place in range(_MOST_POINTS)]
    return rows.sort_values("score", kind="stable").iloc[places]


def forest(leaderboard: str | Path | pd.DataFrame) -> Chart:
    """Draws the mean over targets of each method with its interval, coloured by comparison with the best.

    Args:
        leaderboard: a result folder, or a frame from `leaderboard`.

    Raises:
        ValueError: no method has a mean.
    """
    rows = main_rows(KINDS["leaderboard"].take(leaderboard))
    return parts.panels("leaderboard", rows[rows["mean"].notna()], ("experiment",), _forest)


def _forest(board: pd.DataFrame) -> Chart:
    rows = board[["method", "mean", "standard_error", "n_ok", "n_planned"]].assign(
        low=board["mean_low"],
        high=board["mean_high"],
        group=[_group(row) for _, row in board.iterrows()],
        order=board["rank"].astype(float).fillna(len(board) + 1),
        text=[mean_text(row).replace("+-", "±") for row in board.to_dict("records")],
        is_baseline=(board["method"].astype(object) == board["baseline"].astype(object)).to_numpy(),
    )
    seen = tips("method group n_ok n_planned", "mean standard_error low high")
    marks = parts.interval(parts.measure_of(board).unit, parts.kinds("group", _GROUPS, rows["group"]), seen)
    base = (
        alt.Chart()
        .transform_filter("datum.is_baseline")
        .mark_rule(strokeDash=[4, 3], opacity=0.7)
        .encode(x=alt.X("at:Q"))
    )
    steps = parts.clamped("mean", ("low", "high"))
    return layered(rows, base, *marks, steps=steps, width=2 * WIDTH, height=alt.Step(ROW + 4))


def _group(row: pd.Series[Any]) -> str:
    best, same, worse, unknown, reference = _GROUPS
    if row["reference"]:
        return reference
    if row["rank"] == 1:
        return best
    return unknown if pd.isna(row["bold_holm"]) else same if row["bold_holm"] else worse


def classes(per_class: str | Path | pd.DataFrame) -> Chart:
    """Draws the accuracy of each method on each class, one panel per target.

    Colours show the difference from the mean of the shown methods.

    Args:
        per_class: a result folder, or a frame from `msda_bench.results.predictions.per_class`.

    Raises:
        ValueError: the frame is empty.
    """
    return parts.panels("per_class", KINDS["per_class"].take(per_class), ("experiment", "target"), _classes)


def _classes(per_class: pd.DataFrame) -> Chart:
    rows = per_class[["method", "class", "n", "accuracy", "taken_for"]].sort_values("class", kind="stable")
    number, seen = alt.Text("accuracy:Q", format=".0f"), tips("method class n taken_for", "accuracy middle", ".1f")
    steps = parts.only_shown().transform_joinaggregate(middle="mean(accuracy)", groupby=["class"])
    steps = steps.transform_calculate(away="datum.accuracy - datum.middle")
    return parts.matrix(rows, "class", number, seen, steps, _SPAN)


def cost(runs: str | Path | pd.DataFrame) -> Chart:
    """Draws the mean training time of each method in seconds, the best mean score first; the scores are at the right.

    Args:
        runs: a result folder, or a frame from `load_results`; runs that are not ok are skipped.

    Raises:
        ValueError: no ok run has a time.
    """
    ok = _ok(runs_of(runs))
    return parts.panels("runs", ok[ok["train_seconds"].notna()], ("experiment",), _cost)


def _cost(runs: pd.DataFrame) -> Chart:
    of = runs.assign(order=_order(runs)).groupby("method", sort=False)
    means = of.agg(seconds=("train_seconds", "mean"), steps=("steps", "mean"), score=("score", "mean"))
    rows = means.join(of[["order", "reference"]].first())
    measure = parts.measure_of(runs)
    title = ["seconds of training a run, mean", f"at the right: mean {measure.unit}"]
    scale = parts.scale_of(rows["seconds"], padding=10)
    across = alt.X("seconds:Q", title=title, scale=scale, axis=alt.Axis(tickCount=6))
    base = alt.Chart().encode(y=parts.rows_of())
    dots = base.mark_point(filled=True, size=90, opacity=1).encode(x=across, color=parts.OF_REFERENCE)
    form = ".2f" if measure.percent else ".4~g"
    text = base.mark_text(align="left", dx=12).encode(x=alt.value("width"), text=alt.Text("score:Q", format=form))
    marks = dots.encode(tooltip=tips("method", "seconds steps score")), text
    steps = parts.only_shown()
    return layered(rows.reset_index(), *marks, steps=steps, width=2 * WIDTH, height=alt.Step(ROW + 4))


def regrets(criteria: str | Path | pd.DataFrame) -> Chart:
    """Draws the regret of selecting with each criterion, mean over methods with its standard error.

    Args:
        criteria: a result folder, or a frame from `criteria`; the mean over targets, or the only target, is drawn.

    Raises:
        ValueError: no criterion has a regret.
    """
    criteria = KINDS["criteria"].take(criteria)
    whole = criteria[(criteria["method"] == ALL) & (criteria["criterion"] != ORACLE)]
    several = whole.groupby("experiment")["target"].transform("nunique") > 1
    rows = whole[((whole["target"] == AVERAGE) | ~several) & whole["regret"].notna()]
    return parts.panels("criteria", rows.drop(columns="method"), ("experiment",), _regrets)


def _regrets(criteria: pd.DataFrame) -> Chart:
    error = criteria["regret_standard_error"].astype(float).fillna(0)
    rows = criteria[["criterion", "mean", "regret", "regret_standard_error", "rank_correlation"]]
    rows = rows.assign(low=criteria["regret"] - error, high=criteria["regret"] + error)
    base = alt.Chart().encode(y=parts.rows_of("criterion", "regret", labelLimit=170))
    bars = base.mark_rule(strokeWidth=3, color=BLUE)
    dots = base.mark_point(filled=True, size=80, opacity=1, color=BLUE)
    seen = tips("criterion", "mean regret regret_standard_error rank_correlation")
    bars = bars.encode(x=alt.X("low:Q", title="regret to the oracle"), x2=alt.X2("high:Q"))
    return layered(rows, bars, dots.encode(x=alt.X("regret:Q"), tooltip=seen), width=2 * WIDTH, height=alt.Step(ROW))


def sensitivity(candidates: str | Path | pd.DataFrame) -> Chart:
    """Draws the mean score on the target of every candidate by each of its parameters, one panel per parameter.

    Args:
        candidates: a result folder, or a frame from `sensitivity`: `experiment, method, parameter, value, score`.

    Raises:
        ValueError: the frame is empty.
    """
    return parts.panels("candidates", KINDS["candidates"].take(candidates), ("experiment", "parameter"), _sensitivity)


def _sensitivity(rows: pd.DataFrame) -> Chart:
    up = alt.Y("score:Q", title="score on the target", scale=alt.Scale(zero=False, padding=8))
    base = alt.Chart().encode(x=alt.X("value:Q", title=None, scale=parts.scale_of(rows["value"], padding=8)))
    look = parts.by_method(parts.names(rows, "method"))
    dots = base.mark_point(filled=True, size=40)
    dots = dots.encode(y=up, color=look["color"], tooltip=tips("method", "value score"))
    line = base.mark_line(strokeWidth=1.5).encode(y=alt.Y("mean(score):Q"), **look)
    marks = rows[["method", "value", "score"]], dots, line
    return layered(*marks, steps=parts.only_shown(), width=WIDTH, height=190)
