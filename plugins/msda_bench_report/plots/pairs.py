"""Draws comparisons between methods."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from msda_bench.results.across import Across, across_of, standings
from msda_bench.results.argument_checks import argument
from msda_bench.results.formats import show_p
from msda_bench.results.frame import runs_of
from msda_bench.results.verdict_across import too_few_datasets
from msda_bench.results.words import name_of
from msda_bench.suite.issues import hint, shown_value
from msda_bench_report.plots import parts
from msda_bench_report.plots.parts import BLUE, GREEN, GREY, KINDS, ORANGE, ROW, layered, step, tips
from msda_bench_report.plots.rows import best_of, conclusive, main_pairs, relative_to, turned_pairs
from msda_bench_report.plots.vega import Layer, Spec, channel, in_order, joined

_COLOURS = {"better": GREEN, "worse": ORANGE, "same": GREY, "unknown": GREY}
_MOST_WIDE = 12
"""The number of methods beyond which the columns of a matrix are narrower."""


def differences(comparisons: str | Path | pd.DataFrame, to: str | None = None) -> Spec:
    """Draws the difference of each method from one method, with its interval, paired by seed.

    Args:
        comparisons: a result folder, or a frame from `compare`; the scope `average` or the only target is drawn.
        to: the method with which the others are compared; None for the method with the best mean.

    Raises:
        ValueError: there are no pairs, or none with `to`.
    """
    to = argument("to", to, str | None)
    rows = main_pairs(KINDS["comparisons"].take(comparisons))
    rows = rows[rows["mean_difference"].notna()]
    known = {*rows["first"], *rows["second"]}
    if to is not None and to not in known:
        raise ValueError(f"to: no pair here has the method {shown_value(to)}{hint(to, sorted(known))}")
    return parts.panels("comparisons", rows, ("experiment",), lambda rows: _differences(rows, to or best_of(rows)))


def _differences(rows: pd.DataFrame, to: str) -> Spec:
    turned = relative_to(to, rows).sort_values("difference", ascending=False, kind="stable")
    unit = rows["metric"].iloc[0]
    form = "{:+.3g}"
    if unit == "mse":
        unit = "squared error"
    elif unit.endswith("_percent"):
        unit = "percentage points"
        form = "{:+.2f}"
    text = turned["difference"].map(form.format) + ", p " + turned["p"].map(show_p)
    turned = turned.assign(order=range(len(turned)), text=text)
    seen = tips("method outcome reason pairs", "difference low high p detectable")
    title = [f"difference from {name_of(to)}", f"{unit}; left is worse"]
    marks = parts.interval(title, parts.kinds("outcome", _COLOURS, turned["outcome"]), seen)
    none = Layer(rows=[{"at": 0}]).dashed().encode(x=channel("at:Q"))
    steps = parts.clamped("difference", ("low", "high"), reach=3)
    return parts.in_rows(turned, none, *marks, steps=steps, row=ROW + 4)


def pairs(comparisons: str | Path | pd.DataFrame) -> Spec:
    """Draws the two-sided p-values of all pairs after Holm's correction, as one matrix per target and for their mean.

    Colours show whether the method of a cell's row is better than the method of its column. Panels without enough pairs
    for any test are skipped, and those of suites that do not compare all pairs.

    Args:
        comparisons: a result folder, or a frame from `compare`.

    Raises:
        ValueError: no panel has enough pairs for a test.
    """
    rows = conclusive(KINDS["comparisons"].take(comparisons))
    return parts.panels("comparisons", rows, ("experiment", "place"), _pairs)


def _pairs(rows: pd.DataFrame) -> Spec:
    first = rows["first"].astype(object)
    second = rows["second"].astype(object)
    wins = first.where(rows["mean_difference"] > 0, second)[rows["mean_difference"] != 0].value_counts()
    methods = sorted(dict.fromkeys([*first, *second]), key=lambda name: -wins.get(name, 0))
    places = {name: place for place, name in enumerate(methods)}
    # Each pair twice, once for the row of either method.
    sides = []
    for turned, column in ((True, first), (False, second)):
        own = turned_pairs(rows, np.full(len(rows), turned)).rename(columns={"method": "row"})
        sides.append(own.assign(method=column))
    cells = pd.concat(sides)
    cells["text"] = cells["p"].map(show_p)
    cells["order"] = cells["row"].map(places)
    cells["column"] = cells["method"].map(places)
    cells = cells.sort_index(kind="stable").sort_values("column", kind="stable")
    up = parts.rows_of("row", labelLimit=90)
    across = parts.columns_of("method", labelLimit=60, orient="top", labelAngle=-40)
    colour = parts.kinds("outcome", _COLOURS, cells["outcome"], "the row's method is")
    seen = tips("row method outcome reason pairs", "p difference low high detectable")
    cell = Layer().encode(x=across, y=up)
    marks = cell.draw("rect", cornerRadius=3, opacity=0.35).encode(color=colour, tooltip=seen)
    text = cell.draw("text", fontSize=10).encode(text=channel("text:N"))
    steps = parts.only_shown().filter("indexof(shown, datum.row) >= 0")
    side = step(46 if len(methods) <= _MOST_WIDE else 30)
    return layered(cells, marks, text, steps=steps, width=side, height=step(ROW + 2))


def gains(across: Across) -> Spec:
    """Draws the mean gain of each method over the baseline with its interval.

    References, and methods without a score in some experiment, are not drawn.
    """
    frame = standings(across)
    frame = frame[~frame["reference"].astype(bool)]
    frame = frame[frame["method"] != across.baseline]
    frame = frame[frame["n_experiments"] == frame["n_experiments"].max()]
    columns = {"mean_gain": "gain", "mean_gain_low": "low", "mean_gain_high": "high"}
    rows = frame[["method", *columns]].rename(columns=columns)
    rows["order"] = range(len(rows))
    rows["text"] = rows["gain"].map("{:+.2f}".format)
    title = f"mean gain over {name_of(across.baseline)}, with {100 * (1 - across.alpha):g} % interval"
    base = Layer().encode(y=parts.rows_of())
    zero = Layer().aggregate(n="count()").dashed().encode(x={"datum": 0})
    bars = base.draw("rule", strokeWidth=3, color=BLUE).encode(x=channel("low:Q", title=title), x2={"field": "high"})
    dots = base.dots(90, opacity=1, color=BLUE).encode(x=channel("gain:Q", title=title))
    return parts.in_rows(rows, zero, bars, dots, parts.beside(base, channel("text:N")))


def critical_difference(runs: str | Path | pd.DataFrame | Across) -> Spec:
    """Draws mean ranks over datasets; bars join methods between which no difference was shown.

    Text at the right shows on how many datasets a method is significantly better or worse than the baseline. The dashed
    line marks the baseline's rank.

    Args:
        runs: a result folder, a frame from `load_results` with two datasets or more, or the comparison of its methods.

    Raises:
        ValueError: there are fewer than two datasets of accuracy, or no dataset has a mean of every method.
    """
    across = runs if isinstance(runs, Across) else across_of(runs_of(runs))
    if across is None or not across.mean_ranks:
        raise ValueError("runs: nothing to draw: ranks need at least two datasets with scores of all methods")
    scale = {"domain": [1, max(2, len(across.mean_ranks))], "nice": False, "padding": 12}
    ranks = _ranks(across, scale)
    if not across.cliques:
        return ranks
    return joined("vconcat", [ranks, _groups(across, scale)])


def _ranks(across: Across, scale: Spec) -> Spec:
    ranked = standings(across).dropna(subset="mean_rank").sort_values("mean_rank", kind="stable")
    rows = ranked[["method"]].assign(
        rank=ranked["mean_rank"],
        gain=ranked["mean_gain"],
        order=range(len(ranked)),
        is_base=ranked["method"] == across.baseline,
        text=[_beside(across, row) for row in ranked.to_dict("records")],
    )
    base = Layer().encode(y=parts.rows_of())
    x = channel("rank:Q", title="mean rank over datasets, 1 is best", scale=scale)
    dots = base.dots(90, opacity=1, color=BLUE).encode(x=x, tooltip=tips("method text", "rank gain"))
    ranks = base.draw("text", align="left", dx=9).encode(x=x, text=channel("rank:Q", format=".2f"))
    if not across.baseline:
        return parts.in_rows(rows, dots, ranks)
    line = Layer().filter("datum.is_base").dashed().encode(x=x)
    chart = parts.in_rows(rows, line, parts.beside(base, channel("text:N"), dx=34), dots, ranks)
    what = f"significantly better or worse than {name_of(across.baseline)} within a dataset"
    title = {"text": what, "anchor": "end", "fontSize": 11, "fontWeight": "normal"}
    return in_order(chart | {"title": title})


def _groups(across: Across, scale: Spec) -> Spec:
    ranks = [[across.mean_ranks[name] for name in group] for group in across.cliques]
    rows = pd.DataFrame(
        {
            "methods": [", ".join(map(name_of, group)) for group in across.cliques],
            "low": list(map(min, ranks)),
            "high": list(map(max, ranks)),
            "order": range(len(ranks)),
        }
    )
    title = ["groups in which no difference was shown"]
    if not across.separates:
        title.append(too_few_datasets(across))
    bars = Layer().draw("rule", strokeWidth=5, strokeCap="round", color=GREY)
    bars = bars.encode(
        x=channel("low:Q", title=title, scale=scale),
        x2={"field": "high"},
        y=parts.rows_of("methods", labels=False),
        tooltip=tips("methods", "low high"),
    )
    return parts.in_rows(rows, bars, row=ROW // 2)


def _beside(across: Across, row: Mapping[Any, Any]) -> str:
    """Counts the experiments in which a method is significantly better and worse than the baseline, in words."""
    if row["method"] == across.baseline:
        return "the baseline"
    if not row["n_tested"]:
        return "no test"
    counts = [f"{word} on {row[f'n_{word}']}" for word in ("better", "worse") if row[f"n_{word}"]]
    if not counts:
        return "neither shown"
    return f"{', '.join(counts)} of {row['n_tested']}"
