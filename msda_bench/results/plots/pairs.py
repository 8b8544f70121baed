"""Charts of comparisons between methods."""

from __future__ import annotations

import altair as alt
import pandas as pd

from msda_bench.results.plots.parts import (
    WIDTH,
    Chart,
    clamped,
    data,
    edges,
    name_of,
    names,
    only_shown,
    panels,
    pointed,
    rows_of,
)
from msda_bench.results.tables import show_p

VERDICTS = {
    "significantly better": "#14926b",
    "significantly worse": "#d06a10",
    "no significant difference": "#7d858c",
    "too few pairs for a test": "#7d858c",
}
_UNITS = {"accuracy_percent": "percentage points", "mse": "squared error"}


def differences(comparisons: pd.DataFrame, to: str | None = None) -> Chart:
    """How far each method is from one of them, paired by seed: Hodges-Lehmann estimates with their intervals.

    Args:
        comparisons: of `compare`; the rows of scope `average`, or of the only target, are drawn.
        to: the method that the others are compared with; the one with the best mean where None.
    """
    return panels(main_pairs(comparisons), ("experiment",), lambda rows: _differences(rows, to))


def main_pairs(comparisons: pd.DataFrame) -> pd.DataFrame:
    """The pairs over the means over targets, or at the only target."""
    known = comparisons[comparisons["experiment"].notna()]
    average = known["scope"].astype(object) == "average"
    several = average.groupby(known["experiment"].astype(object)).transform("any")
    return known[average | (~several & (known["scope"].astype(object) == "target"))]


def best_of(rows: pd.DataFrame) -> str | None:
    """The method with the best mean: better in all of its pairs."""
    wins = rows["better"].astype(object).value_counts()
    return None if wins.empty else str(wins.index[0])


def against(rows: pd.DataFrame, to: str) -> pd.DataFrame:
    """The pairs with one method, turned so that differences are positive where the other is better."""
    own = rows[(rows["first"].astype(object) == to) | (rows["second"].astype(object) == to)]
    turned = (own["first"].astype(object) == to).to_numpy()
    sign = pd.Series([-1.0 if flip else 1.0 for flip in turned], index=own.index)
    low, high = own["hl_low"].astype(float) * sign, own["hl_high"].astype(float) * sign
    found = pd.DataFrame(
        {
            "method": own["second"].astype(object).where(turned, own["first"].astype(object)),
            "difference": own["hodges_lehmann"].astype(float) * sign,
            "low": low.where(~turned, high),
            "high": high.where(~turned, low),
            "p": own["p_holm"].astype(float),
            "pairs": own["n_paired"].astype(float),
            "significant": own["significant_holm"].where(can_conclude(own)),
        }
    )
    return found.assign(verdict=[_verdict(row) for _, row in found.iterrows()])


def _verdict(row: pd.Series) -> str:
    better, worse, same, unknown = VERDICTS
    if pd.isna(row["significant"]):
        return unknown
    return (better if row["difference"] > 0 else worse) if row["significant"] else same


def _differences(rows: pd.DataFrame, to: str | None) -> Chart:
    centre = to or best_of(rows) or str(rows["first"].iloc[0])
    found = (
        against(rows, centre).dropna(subset=["difference"]).sort_values("difference", ascending=False, kind="stable")
    )
    found = found.assign(order=range(len(found)), text=[f"p {show_p(p)}" for p in found["p"]])
    base = alt.Chart()
    used = [verdict for verdict in VERDICTS if verdict in set(found["verdict"])]
    colour = alt.Color(
        "verdict:N",
        scale=alt.Scale(domain=used, range=[VERDICTS[verdict] for verdict in used]),
        legend=alt.Legend(title=None, orient="bottom", columns=1, labelLimit=320, symbolType="circle"),
    )
    tips = ["method:N", *(alt.Tooltip(f"{name}:Q", format=".4~g") for name in ("difference", "low", "high", "p"))]
    tips += ["pairs:Q", "verdict:N"]
    unit = _UNITS.get(str(rows["metric"].iloc[0]), "")
    title = f"difference from {name_of(centre)}, {unit}; left is worse"
    zero = alt.Chart(data(pd.DataFrame({"at": [0]}))).mark_rule(strokeDash=[4, 3], opacity=0.7).encode(x="at:Q")
    bars = (
        base.transform_filter("datum.far == 0")
        .mark_rule(strokeWidth=3)
        .encode(
            x=alt.X("at_low:Q", title=title, axis=alt.Axis(tickCount=6)),
            x2="at_high:Q",
            y=rows_of(),
            color=colour,
            tooltip=tips,
        )
    )
    across = alt.X("at:Q", title=title, scale=alt.Scale(padding=10, nice=False))
    dots = base.mark_point(filled=True, size=90, opacity=1).encode(
        x=across, y=rows_of(), color=colour, shape=pointed(), tooltip=tips
    )
    text = base.mark_text(align="left", dx=12).encode(x=alt.value("width"), y=rows_of(), text="text:N")
    layers = only_shown(alt.layer(zero, bars, *edges("low", "high", colour), dots, text, data=data(found)))
    return clamped(layers, "difference", "low", "high", reach=3).properties(width=2 * WIDTH, height=alt.Step(28))


def pairs(comparisons: pd.DataFrame) -> Chart:
    """Two-sided p-values of all pairs after Holm's correction, as a matrix; a panel a target, and the mean over them.

    A cell is coloured by whether the method of its row is better than that of its column. Places without enough pairs
    for any test are left out.

    Args:
        comparisons: of `compare`.
    """
    return panels(conclusive(comparisons), ("experiment", "place"), _pairs)


def can_conclude(comparisons: pd.DataFrame) -> pd.Series:
    """Whether so many pairs could be significant after Holm's correction."""
    enough = comparisons["attainable_p_holm"].astype(float) <= comparisons["alpha"].astype(float)
    return enough & comparisons["significant_holm"].notna()


def conclusive(comparisons: pd.DataFrame) -> pd.DataFrame:
    """The pairs at places where a test can conclude, with their `place`: a target, `average` or `across_targets`."""
    place = (
        comparisons["target"].astype(object).where(comparisons["target"].notna(), comparisons["scope"].astype(object))
    )
    known = comparisons.assign(place=place)
    of = [known["experiment"].fillna("").astype(object), known["place"]]
    can = can_conclude(known).groupby(of).transform("any")
    return known[can & known["p_holm"].notna() & known["experiment"].notna()]


def _pairs(rows: pd.DataFrame) -> Chart:
    methods = list(dict.fromkeys([*names(rows, "first"), *names(rows, "second")]))
    halves = []
    for method in dict.fromkeys([*rows["first"].astype(object), *rows["second"].astype(object)]):
        of = against(rows, method).rename(columns={"method": "row"})
        halves.append(of.assign(method=method, other=of["row"]).drop(columns="row"))
    found = pd.concat(halves)
    found = found.assign(
        text=[show_p(p) for p in found["p"]],
        order=found["other"].map({name: place for place, name in enumerate(methods)}),
        column=found["method"].map({name: place for place, name in enumerate(methods)}),
    )
    base = alt.Chart()
    used = [verdict for verdict in VERDICTS if verdict in set(found["verdict"])]
    colour = alt.Color(
        "verdict:N",
        scale=alt.Scale(domain=used, range=[VERDICTS[verdict] for verdict in used]),
        legend=alt.Legend(title="the row's method is", orient="bottom", columns=1, labelLimit=300),
    )
    axis = alt.Axis(title=None, labelLimit=90, ticks=False, domain=False)
    up = alt.Y("other:N", sort=alt.EncodingSortField(field="order", op="min"), axis=axis)
    across = alt.X(
        "method:N",
        sort=alt.EncodingSortField(field="column", op="min"),
        axis=alt.Axis(title=None, labelLimit=60, ticks=False, domain=False, orient="top", labelAngle=-40),
    )
    tips = ["other:N", "method:N", "verdict:N"]
    tips += [alt.Tooltip(f"{name}:Q", format=".4~g") for name in ("p", "difference", "low", "high", "pairs")]
    cells = base.mark_rect(cornerRadius=3, stroke=None, opacity=0.35).encode(x=across, y=up, color=colour, tooltip=tips)
    text = base.mark_text(fontSize=10).encode(x=across, y=up, text="text:N")
    side = 46 if len(methods) <= 12 else 30  # noqa: PLR2004
    layers = only_shown(alt.layer(cells, text, data=data(found))).transform_filter("indexof(shown, datum.other) >= 0")
    return layers.properties(width=alt.Step(side), height=alt.Step(26))


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
        raise ValueError("methods can be ranked across datasets only where two datasets have scores of all of them")
    ranks = pd.DataFrame({"method": found.methods, "rank": [found.mean_ranks[name] for name in found.methods]})
    ranks = ranks.assign(order=range(len(ranks)))
    last = ranks["order"].max()
    joined = [
        {
            "low": min(own),
            "high": max(own),
            "row": f"group {place}",
            "order": last + 1 + place,
            "methods": ", ".join(one),
        }
        for place, one in enumerate(found.cliques)
        if (own := [found.mean_ranks[name] for name in one])
    ]
    across = alt.X("rank:Q", title="mean rank over datasets, 1 is best", scale=alt.Scale(zero=False, padding=12))
    base = alt.Chart()
    sort = alt.EncodingSortField(field="order", op="min")
    up = alt.Y("method:N", sort=sort, axis=alt.Axis(title=None, labelLimit=120, ticks=False, domain=False))
    dots = base.mark_point(filled=True, size=90, opacity=1, color="#2580bd").encode(
        x=across, y=up, tooltip=["method:N", alt.Tooltip("rank:Q", format=".2f")]
    )
    text = base.mark_text(align="left", dx=9).encode(x=across, y=up, text=alt.Text("rank:Q", format=".2f"))
    shown = alt.layer(dots, text, data=data(ranks)).properties(width=2 * WIDTH, height=alt.Step(24))
    if not joined:
        return shown
    groups = (
        alt.Chart(data(pd.DataFrame(joined)))
        .mark_rule(strokeWidth=5, strokeCap="round", color="#7d858c")
        .encode(
            x=alt.X("low:Q", title="groups without a significant difference", scale=alt.Scale(zero=False, padding=12)),
            x2="high:Q",
            y=alt.Y("row:N", axis=None, sort=sort),
            tooltip=["methods:N"],
        )
    )
    return alt.vconcat(shown, groups.properties(width=2 * WIDTH, height=alt.Step(12))).resolve_scale(x="shared")
