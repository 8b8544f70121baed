"""Draws scores: means with intervals, every run, single classes, the time of training, and how settings are chosen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from msda_bench.results.criteria import ALL
from msda_bench.results.frame import AVERAGE, runs_of
from msda_bench.results.report import mean_text
from msda_bench.results.runs import ok_runs
from msda_bench.results.words import name_of
from msda_bench.suite.plan import ORACLE
from msda_bench_report.plots import parts
from msda_bench_report.plots.parts import BLUE, GREEN, GREY, KINDS, ORANGE, ROW, WIDTH, layered, step, tips
from msda_bench_report.plots.rows import main_rows
from msda_bench_report.plots.vega import Layer, Spec, channel

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
"""The minimum reach of colours in percentage points, so that noise does not look like a difference."""
MOST_DOMAINS = 30
"""The maximum number of columns of a map of domains; of more, the worst ones are drawn."""
_MOST_DECIMALS = 7
"""The number of domains up to which a percentage has a decimal in its cell."""
_MAP = [
    "experiment",
    "task",
    "target",
    "method",
    "reference",
    "rank",
    "metric",
    "mean",
    "standard_error",
    "gain",
    "n_ok",
]
_OF_RUNS = ["experiment", "task", "target", "method", "reference", "seed", "score", "train_seconds", "steps"]
WORST = "▾"
"""Stands in a map of domains beside each method's worst score."""


def points(runs: str | Path | pd.DataFrame) -> Spec:
    """Draws every run as a point and the mean of each method as a line across its row, one panel per target.

    Args:
        runs: a result folder, or a frame from `load_results`; runs that are not ok are skipped.

    Raises:
        ValueError: no run is ok.
    """
    return every_run(ok_runs(runs_of(runs)))


def every_run(ok: pd.DataFrame) -> Spec:
    """The chart of `points` for runs that are ok."""
    return parts.panels("runs", _named(ok), ("experiment", "target"), _points)


def _named(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs with the names of methods that charts show, and the columns that these need."""
    methods = runs["method"].astype(object)
    names = {method: name_of(method) for method in methods.unique()}
    return runs[_OF_RUNS].assign(method=methods.map(names))


def _points(runs: pd.DataFrame) -> Spec:
    rows = runs[["method", "reference", "seed", "score"]].assign(order=_order(runs))
    rows = _thinned(rows)
    measure = parts.measure_of(runs)
    across = channel("at:Q", title=measure.unit, scale={"zero": False, "nice": False, "padding": 8})
    at = channel("at:Q")
    base = Layer().encode(y=parts.rows_of())
    dots = base.dots(34, opacity=0.75)
    dots = dots.encode(x=across, color=parts.OF_REFERENCE, shape=parts.pointed(), tooltip=tips("method seed", "score"))
    form = ".2f" if measure.percent else ".3~g"
    text = f"format(datum.low, '{form}') + (datum.n > 1 ? ' to ' + format(datum.high, '{form}') : '')"
    ends = {"low": "min(score)", "high": "max(score)", "at": "min(at)", "order": "min(order)", "n": "count()"}
    far = base.filter("datum.far != 0").aggregate(["method", "far"], **ends).calculate(text=text)
    far = far.draw("text", dy=-9, align={"expr": "datum.far < 0 ? 'left' : 'right'"})
    far = far.encode(x=at, text=channel("text:N"))
    # The mean is of the scores, not of the positions, since outliers are drawn at the edge.
    means = {"mean": "mean(score)", "order": "min(order)"}
    means |= {"least": "min(least)", "most": "max(most)", "edge": "max(edge)"}
    mean = base.aggregate(["method"], **means)
    mean = mean.calculate(at="clamp(datum.mean, datum.least - datum.edge, datum.most + datum.edge)")
    mean = mean.draw("tick", thickness=2.5, size=16, color=ORANGE, opacity=1)
    mean = mean.encode(x=at, tooltip=tips("method", "mean"))
    steps = parts.clamped("score", reach=3)
    return layered(rows, dots, far, mean, steps=steps, width=WIDTH, height=step(ROW - 2))


def _order(runs: pd.DataFrame) -> pd.Series[int]:
    losses = -parts.measure_of(runs).sign * runs["score"]
    means = losses.groupby([runs["reference"], runs["method"]], sort=False).mean().reset_index()
    order = means.sort_values(["reference", "score"], kind="stable")["method"]
    return runs["method"].map({name: place for place, name in enumerate(order)})


def _thinned(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows method by method, of many runs of a method evenly spaced ones by score."""
    methods = pd.factorize(rows["method"])[0]
    if np.bincount(methods).max() <= _MOST_POINTS:
        return rows.iloc[np.argsort(methods, kind="stable")]
    drawn = []
    for _, own in rows.groupby("method", sort=False):
        if len(own) <= _MOST_POINTS:
            drawn.append(own)
            continue
        places = [round(place * (len(own) - 1) / (_MOST_POINTS - 1)) for place in range(_MOST_POINTS)]
        drawn.append(own.sort_values("score", kind="stable").iloc[places])
    return pd.concat(drawn)


def forest(leaderboard: str | Path | pd.DataFrame) -> Spec:
    """Draws the mean over targets of each method with its interval, coloured by comparison with the best.

    Args:
        leaderboard: a result folder, or a frame from `leaderboard`.

    Raises:
        ValueError: no method has a mean.
    """
    rows = main_rows(KINDS["leaderboard"].take(leaderboard))
    return parts.panels("leaderboard", rows[rows["mean"].notna()], ("experiment",), _forest)


def _forest(board: pd.DataFrame) -> Spec:
    rows = board[["method", "mean", "standard_error", "n_ok", "n_planned"]].assign(
        low=board["mean_low"],
        high=board["mean_high"],
        group=[_group(row) for _, row in board.iterrows()],
        order=board["rank"].astype(float).fillna(len(board) + 1),
        text=[mean_text(row).replace("+-", "±") for row in board.to_dict("records")],
        is_baseline=(board["method"].astype(object) == board["baseline"].astype(object)).to_numpy(),
    )
    seen = tips("method group n_ok n_planned", "mean standard_error low high")
    colour = parts.kinds("group", _GROUPS, rows["group"])
    marks = parts.interval(parts.measure_of(board).unit, colour, seen)
    base = Layer().filter("datum.is_baseline").dashed().encode(x=channel("at:Q"))
    return parts.in_rows(rows, base, *marks, steps=parts.clamped("mean", ("low", "high")), row=ROW + 4)


def _group(row: pd.Series[Any]) -> str:
    best, same, worse, unknown, reference = _GROUPS
    if row["reference"]:
        return reference
    if row["rank"] == 1:
        return best
    if pd.isna(row["bold_holm"]):
        return unknown
    return same if row["bold_holm"] else worse


def domains(leaderboard: str | Path | pd.DataFrame) -> Spec:
    """Draws the mean score of each method at each target as a map; the worst target comes first, in a frame.

    Each method's worst target has a mark. Colours show the difference from the mean over the shown methods.

    Args:
        leaderboard: a result folder, or a frame from `leaderboard`.

    Raises:
        ValueError: no experiment has scores at two targets or more.
    """
    return map_of_domains(at_targets(KINDS["leaderboard"].take(leaderboard)))


def map_of_domains(rows: pd.DataFrame) -> Spec:
    """The chart of `domains` for rows of `at_targets`."""
    return parts.panels("leaderboard", rows, ("experiment",), _domains)


def at_targets(leaderboard: pd.DataFrame) -> pd.DataFrame:
    """The rows of single targets, with their place in a map; experiments with scores at one target alone are left out.

    Returns:
        Rows of the leaderboard with `level`, the score, or its negative where lower is better; `column`, the place
        of the target, from 0 for the worst mean over the ranked methods (without any, over all); and `order`, the place
        of the method, as they are ranked.
    """
    boards = leaderboard[_MAP].groupby("experiment", observed=True, sort=False)
    return pd.concat([_placed(board) for _, board in boards])


def _placed(board: pd.DataFrame) -> pd.DataFrame:
    measure = parts.measure_of(board)
    board = board.astype({"method": object, "target": object})
    rows = board[((board["target"] != AVERAGE) & board["mean"].notna()).to_numpy()]
    if rows["target"].nunique() < 2:  # noqa: PLR2004
        return rows.iloc[:0].assign(level=0.0, column=0, order=0)
    level = measure.sign * rows["mean"]
    reference = rows["reference"].astype(bool)
    ranked = level.mask(reference) if not reference.all() else level
    targets = ranked.groupby(rows["target"]).mean().sort_values(kind="stable").index
    methods = main_rows(board).sort_values(["reference", "rank"], kind="stable")["method"]
    column = rows["target"].map({name: place for place, name in enumerate(targets)})
    order = rows["method"].map({name: place for place, name in enumerate(methods)})
    return rows.assign(level=level, column=column, order=order)


def _domains(board: pd.DataFrame) -> Spec:
    measure = parts.measure_of(board)
    board = board[board["column"] < MOST_DOMAINS]
    form, span = "{:.3g}", 1e-12
    if measure.percent:
        form = "{:.1f}" if board["target"].nunique() <= _MOST_DECIMALS else "{:.0f}"
        span = _SPAN
    own_worst = board["level"] == board.groupby("method")["level"].transform("min")
    shown = board.drop(columns=["experiment", "task", "rank", "metric", "reference"])
    rows = shown.assign(
        text=board["mean"].map(form.format) + own_worst.map({True: WORST, False: ""}),
        ranked=board["level"].where(~board["reference"].astype(bool)),
    )
    # References, such as chance, are coloured as the others are, but do not stretch the scale.
    steps = parts.only_shown().join_aggregate(middle="mean(ranked)")
    steps = steps.calculate(step="isValid(datum.ranked) ? abs(datum.ranked - datum.middle) : 0")
    steps = steps.join_aggregate(reach="max(step)")
    reach = f"max(datum.reach, {span})"
    steps = steps.calculate(away=f"clamp(datum.level - datum.middle, -{reach}, {reach})")
    label = "datum.index === 0 ? '▼ ' + datum.label : datum.label"
    seen = tips("method target", "mean standard_error gain n_ok")
    worst = Layer().filter("datum.column == 0").aggregate(["target"], column="min(column)")
    worst = worst.draw("rule", strokeWidth=2, color=parts.NUMBERS).encode(y={"value": 0}, y2={"value": "height"})
    frame = []
    for side in (0, 1):  # left and right
        frame.append(worst.encode(x=channel("target:N", sort={"field": "column", "op": "min"}, bandPosition=side)))
    return parts.matrix(rows, "target", channel("text:N"), seen, steps, span, label, frame)


def classes(per_class: str | Path | pd.DataFrame) -> Spec:
    """Draws the accuracy of each method on each class, one panel per target.

    Colours show the difference from the mean of the shown methods.

    Args:
        per_class: a result folder, or a frame from `msda_bench.results.predictions.per_class`.

    Raises:
        ValueError: the frame is empty.
    """
    return parts.panels("per_class", KINDS["per_class"].take(per_class), ("experiment", "target"), _classes)


def _classes(per_class: pd.DataFrame) -> Spec:
    rows = per_class[["method", "class", "n", "accuracy", "taken_for"]].sort_values("class", kind="stable")
    number = channel("accuracy:Q", format=".0f")
    seen = tips("method class n taken_for", "accuracy middle", ".1f")
    steps = parts.only_shown().join_aggregate(["class"], middle="mean(accuracy)")
    steps = steps.calculate(away="datum.accuracy - datum.middle")
    return parts.matrix(rows, "class", number, seen, steps, _SPAN)


def cost(runs: str | Path | pd.DataFrame) -> Spec:
    """Draws the mean training time of each method in seconds, the best mean score first; the scores are at the right.

    Args:
        runs: a result folder, or a frame from `load_results`; runs that are not ok are skipped.

    Raises:
        ValueError: no ok run has a time.
    """
    return cost_of(ok_runs(runs_of(runs)))


def cost_of(ok: pd.DataFrame) -> Spec:
    """The chart of `cost` for runs that are ok."""
    return parts.panels("runs", _named(ok[ok["train_seconds"].notna()]), ("experiment",), _cost)


def _cost(runs: pd.DataFrame) -> Spec:
    by_method = runs.assign(order=_order(runs)).groupby("method", sort=False)
    means = by_method[["train_seconds", "steps", "score"]].mean().rename(columns={"train_seconds": "seconds"})
    rows = means.join(by_method[["order", "reference"]].first())
    measure = parts.measure_of(runs)
    title = ["seconds of training a run, mean", f"at the right: mean {measure.unit}"]
    scale = parts.scale_of(rows["seconds"], padding=10)
    across = channel("seconds:Q", title=title, scale=scale, axis={"tickCount": 6})
    base = Layer().encode(y=parts.rows_of())
    dots = base.dots(90, opacity=1)
    dots = dots.encode(x=across, color=parts.OF_REFERENCE, tooltip=tips("method", "seconds steps score"))
    text = parts.beside(base, channel("score:Q", format=".2f" if measure.percent else ".4~g"))
    return parts.in_rows(rows.reset_index(), dots, text, steps=parts.only_shown(), row=ROW + 4)


def regrets(criteria: str | Path | pd.DataFrame) -> Spec:
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


def _regrets(criteria: pd.DataFrame) -> Spec:
    error = criteria["regret_standard_error"].astype(float).fillna(0)
    rows = criteria[["criterion", "mean", "regret", "regret_standard_error", "rank_correlation"]]
    rows = rows.assign(low=criteria["regret"] - error, high=criteria["regret"] + error)
    base = Layer().encode(y=parts.rows_of("criterion", "regret", labelLimit=170))
    bars = base.draw("rule", strokeWidth=3, color=BLUE)
    bars = bars.encode(x=channel("low:Q", title="regret to the oracle"), x2={"field": "high"})
    seen = tips("criterion", "mean regret regret_standard_error rank_correlation")
    dots = base.dots(80, opacity=1, color=BLUE).encode(x=channel("regret:Q"), tooltip=seen)
    return parts.in_rows(rows, bars, dots)


def sensitivity(candidates: str | Path | pd.DataFrame) -> Spec:
    """Draws the mean score on the target of every candidate by each of its parameters, one panel per parameter.

    Args:
        candidates: a result folder, or a frame from `sensitivity`: `experiment, method, parameter, value, score`.

    Raises:
        ValueError: the frame is empty.
    """
    return parts.panels("candidates", KINDS["candidates"].take(candidates), ("experiment", "parameter"), _sensitivity)


def _sensitivity(rows: pd.DataFrame) -> Spec:
    up = channel("score:Q", title="score on the target", scale={"zero": False, "padding": 8})
    scale = parts.scale_of(rows["value"], padding=8)
    base = Layer().encode(x=channel("value:Q", title=None, scale=scale))
    look = parts.by_method(parts.names(rows, "method"))
    dots = base.dots(40).encode(y=up, color=look["color"], tooltip=tips("method", "value score"))
    line = base.draw("line", strokeWidth=1.5).encode(y=channel("mean(score):Q"), **look)
    points = rows[["method", "value", "score"]]
    return layered(points, dots, line, steps=parts.only_shown(), width=WIDTH, height=190)
