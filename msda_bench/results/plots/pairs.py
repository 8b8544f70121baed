"""Charts of comparisons between methods."""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt
import pandas as pd

from msda_bench.results.plots import parts
from msda_bench.results.plots.outliers import clamped, interval
from msda_bench.results.plots.parts import BLUE, GREEN, GREY, ORANGE, ROW, WIDTH, Chart, layered, tips
from msda_bench.results.rows import VERDICTS, against, best_of, conclusive, main_pairs, turned_pairs
from msda_bench.results.tables import show_p
from msda_bench.results.words import name_of

if TYPE_CHECKING:
    from msda_bench.results.across import Across

_COLOURS = dict(zip(VERDICTS, (GREEN, ORANGE, GREY, GREY), strict=True))
MOST_WIDE = 12
"""Methods beyond which the columns of a matrix are narrower."""


def differences(comparisons: pd.DataFrame, to: str | None = None) -> Chart:
    """How far each method is from one of them, paired by seed: Hodges-Lehmann estimates with their intervals.

    Args:
        comparisons: of `compare`; the rows of scope `average`, or of the only target, are drawn.
        to: the method that the others are compared with; the one with the best mean where None.

    Raises:
        ValueError: there are no pairs.
    """
    rows = main_pairs(comparisons)
    rows = rows[rows["hodges_lehmann"].notna()]
    return parts.panels(rows, ("experiment",), lambda own: _differences(own, to or best_of(own)))


def _differences(rows: pd.DataFrame, to: str) -> Chart:
    found = against(rows, to).sort_values("difference", ascending=False, kind="stable")
    metric = rows["metric"].iloc[0]
    form = "{:+.2f}" if metric.endswith("_percent") else "{:+.3g}"
    numbers = zip(found["difference"], found["p"], strict=True)
    text = [f"{form.format(difference)}, p {show_p(p)}" for difference, p in numbers]
    found = found.assign(order=range(len(found)), text=text)
    unit = "percentage points" if metric.endswith("_percent") else "squared error" if metric == "mse" else metric
    seen = tips("method verdict pairs", "difference low high p")
    title = [f"difference from {name_of(to)}", f"{unit}; left is worse"]
    marks = interval(title, parts.kinds("verdict", _COLOURS, found["verdict"]), seen)
    none = alt.Chart(alt.InlineData(values=[{"at": 0}])).mark_rule(strokeDash=[4, 3], opacity=0.7).encode(x="at:Q")
    steps = clamped("difference", "low", "high", reach=3)
    return layered(found, none, *marks, steps=steps, width=2 * WIDTH, height=alt.Step(ROW + 4))


def pairs(comparisons: pd.DataFrame) -> Chart:
    """Two-sided p-values of all pairs after Holm's correction, as a matrix; a panel a target, and the mean over them.

    A cell is coloured by whether the method of its row is better than that of its column. Places without enough pairs
    for any test are left out.

    Args:
        comparisons: of `compare`.

    Raises:
        ValueError: no place has enough pairs.
    """
    return parts.panels(conclusive(comparisons), ("experiment", "place"), _pairs)


def _pairs(rows: pd.DataFrame) -> Chart:
    wins = rows["better"].astype(object).value_counts()
    methods = list(dict.fromkeys([*rows["first"].astype(object), *rows["second"].astype(object)]))
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
    colour = parts.kinds("verdict", _COLOURS, found["verdict"], "the row's method is")
    seen = tips("row method verdict pairs", "p difference low high")
    cells = alt.Chart().mark_rect(cornerRadius=3, opacity=0.35).encode(x=across, y=up, color=colour, tooltip=seen)
    text = alt.Chart().mark_text(fontSize=10).encode(x=across, y=up, text="text:N")
    steps = parts.only_shown().transform_filter("indexof(shown, datum.row) >= 0")
    side = alt.Step(46 if len(methods) <= MOST_WIDE else 30)
    return layered(found, cells, text, steps=steps, width=side, height=alt.Step(ROW + 2))


def critical_difference(runs: pd.DataFrame) -> Chart:
    """Mean ranks over datasets; bars join groups of methods without a significant difference after Holm's correction.

    Args:
        runs: of `load_results`, of two datasets or more.

    Raises:
        ValueError: there are fewer than two datasets of accuracy, or no dataset has a mean of every method.
    """
    from msda_bench.results.across import across_datasets
    from msda_bench.results.scores import grids

    found = across_datasets(list(grids(runs)))
    if found is None or not found.mean_ranks:
        raise ValueError("nothing to draw: methods are ranked where two datasets or more have scores of all of them")
    return rank_chart(found)


def rank_chart(found: Across) -> Chart:
    """The mean ranks and groups of a comparison that has them."""
    ranks = found.mean_ranks
    rows = [{"method": name, "rank": ranks[name], "order": place} for place, name in enumerate(found.methods)]
    groups = [
        {"methods": ", ".join(map(name_of, one)), "low": min(own), "high": max(own), "order": place}
        for place, one in enumerate(found.cliques)
        if (own := [ranks[name] for name in one])
    ]
    scale = alt.Scale(domain=[1, max(2, len(ranks))], nice=False, padding=12)
    across = alt.X("rank:Q", title="mean rank over datasets, 1 is best", scale=scale)
    dots = alt.Chart().mark_point(filled=True, size=90, opacity=1, color=BLUE)
    dots = dots.encode(x=across, y=parts.rows_of(), tooltip=tips("method", "rank"))
    text = alt.Chart().mark_text(align="left", dx=9)
    text = text.encode(x=across, y=parts.rows_of(), text=alt.Text("rank:Q", format=".2f"))
    shown = layered(pd.DataFrame(rows), dots, text, width=2 * WIDTH, height=alt.Step(ROW))
    if not groups:
        return shown
    low = alt.X("low:Q", title="groups without a significant difference", scale=scale)
    bars = alt.Chart().mark_rule(strokeWidth=5, strokeCap="round", color=GREY)
    bars = bars.encode(
        x=low, x2="high:Q", y=parts.rows_of("methods", labels=False), tooltip=tips("methods", "low high")
    )
    below = layered(pd.DataFrame(groups), bars, width=2 * WIDTH, height=alt.Step(ROW // 2))
    return alt.vconcat(shown, below)
