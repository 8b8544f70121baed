"""Draws comparisons between methods."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd
from altair.utils.schemapi import debug_mode

from msda_bench.analysis import (
    BETTER,
    COMPARISONS,
    SAME,
    UNKNOWN,
    WORSE,
    Across,
    across_of,
    against,
    argument,
    best_of,
    conclusive,
    hint,
    main_pairs,
    name_of,
    runs_of,
    show_p,
    shown,
    standings,
    too_few_datasets,
    turned_pairs,
)
from msda_bench_report.plots import parts
from msda_bench_report.plots.outliers import clamped, interval
from msda_bench_report.plots.parts import BLUE, GREEN, GREY, ORANGE, ROW, WIDTH, Chart, layered, tips

_COLOURS = {BETTER: GREEN, WORSE: ORANGE, SAME: GREY, UNKNOWN: GREY}
MOST_WIDE = 12
"""The number of methods beyond which the columns of a matrix are narrower."""


def differences(comparisons: str | Path | pd.DataFrame, to: str | None = None) -> Chart:
    """Draws the difference of each method from one method: Hodges-Lehmann estimates with intervals, paired by seed.

    Args:
        comparisons: a result folder, or a frame from `compare`; the scope `average` or the only target is drawn.
        to: the method with which the others are compared; None for the method with the best mean.

    Raises:
        ValueError: there are no pairs, or none with `to`.
    """
    comparisons, to = COMPARISONS.take(comparisons), argument("to", to, str | None)
    rows = main_pairs(comparisons)
    rows = rows[rows["hodges_lehmann"].notna()]
    if to is not None and to not in (known := {*rows["first"], *rows["second"]}):
        raise ValueError(f"to: no pair here has the method {shown(to)}{hint(to, sorted(known))}")
    return parts.panels(COMPARISONS, rows, ("experiment",), lambda own: _differences(own, to or best_of(own)))


def _differences(rows: pd.DataFrame, to: str) -> Chart:
    found = against(rows, to).sort_values("difference", ascending=False, kind="stable")
    metric = rows["metric"].iloc[0]
    form = "{:+.2f}" if metric.endswith("_percent") else "{:+.3g}"
    numbers = zip(found["difference"], found["p"], strict=True)
    text = [f"{form.format(difference)}, p {show_p(p)}" for difference, p in numbers]
    found = found.assign(order=range(len(found)), text=text)
    unit = "percentage points" if metric.endswith("_percent") else "squared error" if metric == "mse" else metric
    seen = tips("method outcome reason pairs", "difference low high p detectable")
    title = [f"difference from {name_of(to)}", f"{unit}; left is worse"]
    marks = interval(title, parts.kinds("outcome", _COLOURS, found["outcome"]), seen)
    none = alt.Chart(alt.InlineData(values=[{"at": 0}])).mark_rule(strokeDash=[4, 3], opacity=0.7).encode(x="at:Q")
    steps = clamped("difference", "low", "high", reach=3)
    return layered(found, none, *marks, steps=steps, width=2 * WIDTH, height=alt.Step(ROW + 4))


def pairs(comparisons: str | Path | pd.DataFrame) -> Chart:
    """Draws the two-sided p-values of all pairs after Holm's correction, as one matrix per target and for their mean.

    Colours show whether the method of a cell's row is better than the method of its column. Panels without enough pairs
    for any test are skipped.

    Args:
        comparisons: a result folder, or a frame from `compare`.

    Raises:
        ValueError: no panel has enough pairs for a test.
    """
    comparisons = COMPARISONS.take(comparisons)
    return parts.panels(COMPARISONS, conclusive(comparisons), ("experiment", "place"), _pairs)


def _pairs(rows: pd.DataFrame) -> Chart:
    first, second = rows["first"].astype(object), rows["second"].astype(object)
    wins = first.where(rows["mean_difference"] > 0, second)[rows["mean_difference"] != 0].value_counts()
    methods = list(dict.fromkeys([*first, *second]))
    methods.sort(key=lambda name: -wins.get(name, 0))
    places = {name: place for place, name in enumerate(methods)}
    twice = pd.concat([rows, rows], ignore_index=True)
    turned = pd.Series([True] * len(rows) + [False] * len(rows))
    found = turned_pairs(twice, turned).rename(columns={"method": "row"})
    found["method"] = twice["first"].astype(object).where(turned, twice["second"].astype(object))
    found = found.assign(
        text=found["p"].map(show_p), order=found["row"].map(places), column=found["method"].map(places)
    )
    found = found.assign(pair=twice.index % len(rows)).sort_values(["column", "pair"]).drop(columns="pair")
    up = parts.rows_of("row", labelLimit=90)
    across = parts.columns_of("method", "column", labelLimit=60, orient="top", labelAngle=-40)
    colour = parts.kinds("outcome", _COLOURS, found["outcome"], "the row's method is")
    seen = tips("row method outcome reason pairs", "p difference low high detectable")
    cells = alt.Chart().mark_rect(cornerRadius=3, opacity=0.35).encode(x=across, y=up, color=colour, tooltip=seen)
    text = alt.Chart().mark_text(fontSize=10).encode(x=across, y=up, text="text:N")
    steps = parts.only_shown().transform_filter("indexof(shown, datum.row) >= 0")
    side = alt.Step(46 if len(methods) <= MOST_WIDE else 30)
    return layered(found, cells, text, steps=steps, width=side, height=alt.Step(ROW + 2))


def critical_difference(runs: str | Path | pd.DataFrame) -> Chart:
    """Draws mean ranks over datasets; bars join methods between which no difference was shown.

    Text at the right shows on how many datasets a method is significantly better or worse than the baseline. The dashed
    line marks the baseline's rank.

    Args:
        runs: a result folder, or a frame from `load_results` with two datasets or more.

    Raises:
        ValueError: there are fewer than two datasets of accuracy, or no dataset has a mean of every method.
    """
    found = across_of(runs_of(runs))
    if found is None or not found.mean_ranks:
        raise ValueError("runs: nothing to draw: ranks need at least two datasets with scores of all methods")
    return rank_chart(found)


def rank_chart(found: Across) -> Chart:
    """Draws the mean ranks and groups of a comparison that has ranks, with wins and losses against the baseline."""
    with debug_mode(arg=False):  # skips validation, as in `parts.panels`
        chart = _rank_chart(found, standings(found).dropna(subset="mean_rank"))
        # A reader's font may be wider than the one with which the text was measured.
        return chart.properties(padding={"left": 16, "right": 24, "top": 5, "bottom": 5})


def _rank_chart(found: Across, ranked: pd.DataFrame) -> Chart:
    rows = pd.DataFrame(
        {
            "method": ranked["method"],
            "rank": ranked["mean_rank"],
            "gain": ranked["mean_gain"],
            "order": range(len(ranked)),
            "is_base": (ranked["method"] == found.baseline).to_numpy(),
            "text": [_beside(found, row) for row in ranked.to_dict("records")],
        }
    )
    scale = alt.Scale(domain=[1, max(2, len(rows))], nice=False, padding=12)
    across = alt.X("rank:Q", title="mean rank over datasets, 1 is best", scale=scale)
    up, seen = parts.rows_of(), tips("method text", "rank gain")
    dots = alt.Chart().mark_point(filled=True, size=90, opacity=1, color=BLUE).encode(x=across, y=up, tooltip=seen)
    number = alt.Text("rank:Q", format=".2f")
    ranks = alt.Chart().mark_text(align="left", dx=9).encode(x=across, y=up, text=number)
    beside = alt.Chart().mark_text(align="left", dx=34).encode(x=alt.value("width"), y=up, text="text:N")
    base = alt.Chart().transform_filter("datum.is_base").mark_rule(strokeDash=[4, 3], opacity=0.7).encode(x=across)
    marks = [base, beside] if found.baseline else []
    shown = layered(rows, *marks, dots, ranks, width=2 * WIDTH, height=alt.Step(ROW))
    if found.baseline:
        what = f"significantly better or worse than {name_of(found.baseline)} within a dataset"
        shown.title = alt.Title(what, anchor="end", fontSize=11, fontWeight="normal")
    groups = [
        {"methods": ", ".join(map(name_of, one)), "low": min(own), "high": max(own), "order": place}
        for place, one in enumerate(found.cliques)
        if (own := [found.mean_ranks[name] for name in one])
    ]
    if not groups:
        return shown
    title = ["groups in which no difference was shown"]
    title += [] if found.separates else [too_few_datasets(found)]
    low = alt.X("low:Q", title=title, scale=scale)
    bars = alt.Chart().mark_rule(strokeWidth=5, strokeCap="round", color=GREY)
    bars = bars.encode(
        x=low, x2="high:Q", y=parts.rows_of("methods", labels=False), tooltip=tips("methods", "low high")
    )
    below = layered(pd.DataFrame(groups), bars, width=2 * WIDTH, height=alt.Step(ROW // 2))
    return alt.vconcat(shown, below)


def _beside(found: Across, row: Mapping[Any, Any]) -> str:
    """Counts the experiments in which a method is significantly better and worse than the baseline, in words."""
    if row["method"] == found.baseline:
        return "the baseline"
    if not row["n_tested"]:
        return "no test"
    counts = [f"{word} on {row[f'n_{word}']}" for word in ("better", "worse") if row[f"n_{word}"]]
    return f"{', '.join(counts)} of {row['n_tested']}" if counts else "neither shown"
