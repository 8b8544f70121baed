"""Charts of scores: means with intervals, every run, and what a score costs."""

from __future__ import annotations

import altair as alt
import pandas as pd

from msda_bench.results.plots.parts import (
    ROW,
    WIDTH,
    Chart,
    clamped,
    data,
    edges,
    name_of,
    only_shown,
    panels,
    pointed,
    rows_of,
    scale_of,
    unit_of,
)

GROUPS = {
    "best mean": "#14926b",
    "no significant difference from the best": "#2580bd",
    "significantly worse than the best": "#d06a10",
    "too few runs for a test": "#7d858c",
    "reference, not ranked": "#7d858c",
}
"""How a method compares with the best one, after Holm's correction, and the colour for it."""
MOST_POINTS = 60
"""Points of one method in a panel; of more runs, evenly spaced ones in the order of their scores are drawn."""
_FORMAT = {True: ".2f", False: ".3~g"}


def points(runs: pd.DataFrame) -> Chart:
    """Every run as a point, and the mean of each method as a line across its row; a panel a target.

    Args:
        runs: of `load_results`; runs that are not ok are left out.
    """
    return panels(runs[(runs["status"] == "ok").to_numpy()], ("experiment", "target"), _points)


def _points(runs: pd.DataFrame) -> Chart:
    found = runs[["method", "reference", "seed", "score"]].assign(method=runs["method"].map(name_of).astype(object))
    found = found.assign(mean=found.groupby("method")["score"].transform("mean"), order=_order(runs))
    kept = pd.concat([_thinned(rows) for _, rows in found.groupby("method", sort=False)]) if len(found) else found
    base = alt.Chart()
    tips = [alt.Tooltip("method:N"), alt.Tooltip("seed:Q"), alt.Tooltip("score:Q", format=".4~f")]
    form = _FORMAT[_is_percent(runs)]
    across = alt.X("at:Q", title=unit_of(runs), scale=alt.Scale(zero=False, nice=False, padding=8))
    dots = base.mark_point(filled=True, size=34, opacity=0.6).encode(
        x=across,
        y=rows_of(),
        color=alt.condition("datum.reference", alt.value("#7d858c"), alt.value("#2580bd")),
        shape=pointed(),
        tooltip=tips,
    )
    show = alt.Text("text:N")
    outside = (
        base.transform_filter("datum.far != 0")
        .transform_aggregate(
            n="count()",
            at="min(at)",
            low="min(score)",
            high="max(score)",
            order="min(order)",
            groupby=["method", "far"],
        )
        .transform_calculate(
            text=f"format(datum.low, '{form}') + (datum.n > 1 ? ' to ' + format(datum.high, '{form}') : '')"
        )
        .mark_text(dy=-9, fontSize=10, align=alt.ExprRef("datum.far < 0 ? 'left' : 'right'"))
        .encode(x="at:Q", y=rows_of(), text=show)
    )
    means = (
        base.transform_aggregate(mean="mean(at)", order="min(order)", exact="min(mean)", groupby=["method"])
        .mark_tick(thickness=2.5, size=16, color="#d06a10")
        .encode(x="mean:Q", y=rows_of(), tooltip=["method:N", alt.Tooltip("exact:Q", title="mean", format=".4~f")])
    )
    layers = only_shown(alt.layer(dots, outside, means, data=data(kept)))
    return clamped(layers, "score", reach=3).properties(width=WIDTH, height=alt.Step(ROW))


def _order(runs: pd.DataFrame) -> pd.Series:
    """The place of each row's method: the best mean first, references last."""
    sign = -1 if _is_percent(runs) else 1
    method = runs["method"].astype(object)
    mean = sign * runs["score"].groupby(method).transform("mean")
    keys = pd.DataFrame({"reference": runs["reference"], "mean": mean, "method": method})
    places = keys.drop_duplicates().sort_values(["reference", "mean"], kind="stable")["method"]
    return method.map({name: place for place, name in enumerate(places)})


def _thinned(rows: pd.DataFrame) -> pd.DataFrame:
    if len(rows) <= MOST_POINTS:
        return rows
    ordered = rows.sort_values("score", kind="stable")
    return ordered.iloc[[round(place * (len(rows) - 1) / (MOST_POINTS - 1)) for place in range(MOST_POINTS)]]


def forest(leaderboard: pd.DataFrame) -> Chart:
    """The mean over targets of each method with its bootstrap interval, coloured by how it compares with the best.

    Args:
        leaderboard: of `leaderboard`.
    """
    return panels(main_rows(leaderboard), ("experiment",), _forest)


def main_rows(leaderboard: pd.DataFrame) -> pd.DataFrame:
    """The rows that methods are ranked by: the mean over targets, or the only target's."""
    several = leaderboard.groupby("experiment", observed=True)["target"].transform("nunique") > 1
    return leaderboard[(leaderboard["target"].astype(object) == "average") | ~several]


def group_of(row: pd.Series) -> str:
    """How a row of the leaderboard compares with the best."""
    best, same, worse, unknown, reference = GROUPS
    if row["reference"]:
        return reference
    if pd.notna(row["rank"]) and row["rank"] == 1:
        return best
    return unknown if pd.isna(row["bold_holm"]) else same if row["bold_holm"] else worse


def _forest(rows: pd.DataFrame) -> Chart:
    found = rows.assign(group=[group_of(row) for _, row in rows.iterrows()])
    found = found.assign(order=found["rank"].astype(float).fillna(len(found) + 1), text=_mean_text(found))
    found["is_baseline"] = (found["method"].astype(object) == found["baseline"].astype(object)).fillna(value=False)
    keep = [
        "is_baseline",
        "method",
        "mean",
        "standard_error",
        "mean_low",
        "mean_high",
        "group",
        "order",
        "text",
        "n_ok",
        "n_planned",
    ]
    known = found[keep].rename(columns={"mean_low": "low", "mean_high": "high"}).dropna(subset=["mean"])
    base = alt.Chart()
    legend = alt.Legend(title=None, orient="bottom", columns=1, labelLimit=320, symbolType="circle")
    used = [group for group in GROUPS if group in set(found["group"])]
    colour = alt.Color("group:N", scale=alt.Scale(domain=used, range=[GROUPS[group] for group in used]), legend=legend)
    tips = [
        "method:N",
        *(alt.Tooltip(f"{name}:Q", format=".4~f") for name in ("mean", "standard_error", "low", "high")),
    ]
    tips += ["n_ok:Q", "n_planned:Q", "group:N"]
    across = alt.X("at:Q", title=unit_of(rows), scale=alt.Scale(zero=False, nice=False, padding=10))
    bars = (
        base.transform_filter("datum.far == 0")
        .mark_rule(strokeWidth=3)
        .encode(
            x=alt.X("at_low:Q", title=unit_of(rows), axis=alt.Axis(tickCount=6)),
            x2="at_high:Q",
            y=rows_of(),
            color=colour,
            tooltip=tips,
        )
    )
    dots = base.mark_point(filled=True, size=90, opacity=1).encode(
        x=across,
        y=rows_of(),
        color=colour,
        shape=pointed(),
        tooltip=tips,
    )
    label = base.mark_text(align="left", dx=12).encode(x=alt.value("width"), y=rows_of(), text="text:N")
    line = base.transform_filter("datum.is_baseline").mark_rule(strokeDash=[4, 3], opacity=0.7).encode(x="at:Q")
    layers = only_shown(alt.layer(line, bars, *edges("low", "high", colour), dots, label, data=data(known)))
    return clamped(layers, "mean", "low", "high").properties(width=2 * WIDTH, height=alt.Step(28))


def _mean_text(rows: pd.DataFrame) -> list[str]:
    show = "{:.2f}" if _is_percent(rows) else "{:.3g}"
    return [
        "" if pd.isna(mean) else show.format(mean) + ("" if pd.isna(error) else f" ± {show.format(error)}")
        for mean, error in zip(rows["mean"], rows["standard_error"], strict=True)
    ]


def _is_percent(rows: pd.DataFrame) -> bool:
    return bool((rows["task"].astype(object) == "classification").any())


def cost(runs: pd.DataFrame) -> Chart:
    """The mean score of each method by its mean seconds of training.

    Args:
        runs: of `load_results`; runs that are not ok are left out.
    """
    return panels(runs[(runs["status"] == "ok").to_numpy()], ("experiment",), _cost)


def _cost(runs: pd.DataFrame) -> Chart:
    of = runs.assign(method=runs["method"].map(name_of).astype(object)).groupby("method", sort=False)
    found = of.agg(seconds=("train_seconds", "mean"), steps=("steps", "mean"), score=("score", "mean")).reset_index()
    found = found.dropna(subset=["seconds", "score"])
    base = alt.Chart()
    across = alt.X("seconds:Q", title="seconds of training a run", scale=scale_of(found["seconds"], padding=14))
    up = alt.Y("at:Q", title=unit_of(runs), scale=alt.Scale(zero=False, padding=12))
    tips = ["method:N", *(alt.Tooltip(f"{name}:Q", format=".4~g") for name in ("seconds", "steps", "score"))]
    dots = base.mark_point(filled=True, size=70, opacity=1, color="#2580bd").encode(x=across, y=up, tooltip=tips)
    text = base.mark_text(align="left", dx=8).encode(x=across, y=up, text="method:N")
    layers = only_shown(alt.layer(dots, text, data=data(found)))
    return clamped(layers, "score").properties(width=2 * WIDTH, height=260)
