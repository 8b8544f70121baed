"""Charts over the epochs: weights of the sources, risks and gaps."""

from __future__ import annotations

from typing import Literal

import altair as alt
import pandas as pd

from msda_bench.results.plots.parts import (
    DASHES,
    HUES,
    ROW,
    WIDTH,
    Chart,
    colours,
    dashes,
    data,
    name_of,
    names,
    only_shown,
    panels,
    scale_of,
)

MOST_EPOCHS = 40
"""Epochs of a line; of more, evenly spaced ones are drawn, the first and the last among them."""
MOST_LINES = 14
"""Sources beyond which their lines cannot be distinguished."""
SPAN = 0.05
"""The least deviation from equal weights that a scale reaches, so that noise does not look like a preference."""
DIVERGING = ["#e59a52", "#f1f1ee", "#62abdb"]
"""Less than equal weight, equal, and more: light enough for dark numbers."""
_TITLES = {"risk": "risk of the sources", "gap": "gap between source and target"}


def weighing(curves: pd.DataFrame) -> pd.DataFrame:
    """The rows of methods that give single sources weights of their own; equal weights are none."""
    single = curves[~curves["pooled"].astype(bool)]
    equal = 1 / single.groupby(["experiment", "target", "method", "seed", "epoch"], observed=True)["source"].transform(
        "nunique"
    )
    single = single.assign(equal=equal)
    uneven = (single["weight"] - equal).abs() > 1e-6  # noqa: PLR2004
    own = uneven.groupby([single["experiment"].astype(object), single["method"].astype(object)]).transform("any")
    return single[own & (equal < 1)]


def weights(curves: pd.DataFrame) -> Chart:
    """The weight of each source over the epochs; a row a method, a panel a target.

    A line is the mean over seeds, and its band reaches one standard deviation to both sides. Dashed: equal weights.

    Args:
        curves: of `load_curves`.
    """
    return panels(weighing(curves), ("experiment", "target"), _weights)


def _weights(curves: pd.DataFrame) -> Chart:
    kept = _thinned(curves)
    kept = kept.assign(method=kept["method"].map(name_of), source=kept["source"].map(name_of))
    of = kept.groupby(["method", "source", "epoch"], observed=True, sort=False)
    found = of.agg(mean=("weight", "mean"), deviation=("weight", "std"), equal=("equal", "mean")).reset_index()
    half = found["deviation"].fillna(0)
    found = found.assign(low=found["mean"] - half, high=found["mean"] + half)
    found = found.assign(floor=(found["equal"] - SPAN).clip(lower=0), ceiling=found["equal"] + SPAN)
    sources, methods = names(curves, "source"), names(curves, "method")
    across = alt.X("epoch:Q", title="epoch", axis=alt.Axis(tickMinStep=1), scale=alt.Scale(nice=False, zero=False))
    base = alt.Chart()
    hues = [HUES[place % len(HUES)] for place in range(len(sources))]
    kinds = [list(DASHES[place // len(HUES) % len(DASHES)]) for place in range(len(sources))]
    legend = alt.Legend(title=None, orient="bottom", columns=3, labelLimit=100, symbolOpacity=1)
    colour = alt.Color("source:N", scale=alt.Scale(domain=sources, range=hues), legend=legend)
    dash = alt.StrokeDash("source:N", scale=alt.Scale(domain=sources, range=kinds), legend=legend)
    up = alt.Y("mean:Q", title="weight", scale=alt.Scale(zero=False))
    tips = ["method:N", "source:N", "epoch:Q", *(alt.Tooltip(f"{x}:Q", format=".3f") for x in ("mean", "low", "high"))]
    equal = base.mark_rule(strokeDash=[4, 3], opacity=0.6).encode(y="mean(equal):Q")
    room = [base.mark_point(opacity=0).encode(x=across, y=f"{end}:Q") for end in ("floor", "ceiling")]
    band = base.mark_area(opacity=0.22).encode(x=across, y=alt.Y("low:Q", title="weight"), y2="high:Q", color=colour)
    line = base.mark_line(strokeWidth=2).encode(x=across, y=up, color=colour, strokeDash=dash)
    dots = base.mark_point(filled=True, size=26, opacity=0).encode(x=across, y=up, color=colour, tooltip=tips)
    layered = alt.layer(*room, equal, band, line, dots, data=data(found)).properties(width=WIDTH, height=90)
    header = alt.Header(title=None, orient="top", labelAnchor="start", labelPadding=2, labelLimit=WIDTH)
    faceted = layered.facet(row=alt.Row("method:N", header=header, sort=methods), spacing=6)
    return only_shown(faceted)


def weight_map(curves: pd.DataFrame) -> Chart:
    """The weights at the last epoch, mean over seeds; colours show how far they are from equal weights.

    Args:
        curves: of `load_curves`.
    """
    return panels(final_weights(curves), ("experiment", "target"), _weight_map)


def final_weights(curves: pd.DataFrame) -> pd.DataFrame:
    """The mean over seeds of each source's weight at a run's last epoch.

    Returns:
        `experiment, target, method, source, weight, equal` (1 / number of sources), `seeds` (how many).
    """
    single = weighing(curves)
    last = single["epoch"].groupby([single[name] for name in _PLACE], observed=True).transform("max")
    of = single[single["epoch"] == last].groupby([*_PLACE[:3], "source"], observed=True, sort=False)
    return of.agg(weight=("weight", "mean"), equal=("equal", "mean"), seeds=("seed", "nunique")).reset_index()


_PLACE = ["experiment", "target", "method", "seed"]


def by_domain(curves: pd.DataFrame) -> pd.DataFrame:
    """Curves with the parts of each split source summed up into it: weights added, risks and gaps averaged."""
    place = [*_PLACE, "epoch", "part_of"]
    of = curves.groupby(place, observed=True, sort=False)
    found = of.agg(risk=("risk", "mean"), gap=("gap", "mean"), weight=("weight", "sum"), pooled=("pooled", "any"))
    return found.reset_index().assign(source=lambda rows: rows["part_of"])


def _weight_map(found: pd.DataFrame) -> Chart:
    sources = names(found, "source")
    found = found.assign(away=found["weight"] - found["equal"])
    base = alt.Chart()
    across = alt.X(
        "source:N", sort=sources, axis=alt.Axis(title=None, labelAngle=-40, labelLimit=90, ticks=False, domain=False)
    )
    up = alt.Y(
        "method:N", sort=names(found, "method"), axis=alt.Axis(title=None, labelLimit=120, ticks=False, domain=False)
    )
    colour = alt.Color("tone:Q", scale=alt.Scale(domain=[-1, 0, 1], range=DIVERGING, interpolate="rgb"), legend=None)
    tips = [
        "method:N",
        "source:N",
        *(alt.Tooltip(f"{name}:Q", format=".3f") for name in ("weight", "equal")),
        "seeds:Q",
    ]
    cells = base.mark_rect().encode(x=across, y=up, color=colour, tooltip=tips)
    layers: list[alt.Chart] = [cells]
    if len(sources) <= MOST_NUMBERS:
        layers.append(
            base.mark_text(fontSize=10, color="#1b1f23").encode(x=across, y=up, text=alt.Text("weight:Q", format=".2f"))
        )
    layered = only_shown(alt.layer(*layers, data=data(found)))
    layered = layered.transform_calculate(size_="abs(datum.away)").transform_joinaggregate(most_="max(size_)")
    layered = layered.transform_calculate(tone=f"datum.away / max({SPAN}, datum.most_)")
    width = max(WIDTH // 2, min(2 * WIDTH, 40 * len(sources)))
    return layered.properties(width=width, height=alt.Step(ROW + 4))


MOST_NUMBERS = 14
"""Sources beyond which their columns are too narrow for numbers."""


def curves(curves: pd.DataFrame, what: Literal["risk", "gap"] = "risk") -> Chart:
    """Risk or gap over the epochs, mean over sources and seeds; a panel a target.

    Args:
        curves: of `load_curves`.
        what: which of both; methods without a discrepancy have no gap and are left out.
    """
    found = curves.assign(value=curves[what])
    if what == "gap" and len(found):
        found = found[(found["value"].abs() > 0).groupby(found["method"].astype(object)).transform("any")]
    return panels(found, ("experiment", "target"), lambda rows: _curves(rows, _TITLES[what]))


def _curves(rows: pd.DataFrame, title: str) -> Chart:
    kept = _thinned(rows.assign(method=rows["method"].map(name_of)))
    found = kept.groupby(["method", "epoch"], observed=True, sort=False)["value"].mean().reset_index()
    methods = names(rows, "method")
    base = alt.Chart().encode(
        x=alt.X("epoch:Q", title="epoch", axis=alt.Axis(tickMinStep=1), scale=alt.Scale(nice=False, zero=False)),
        y=alt.Y("value:Q", title=title, scale=scale_of(found["value"])),
    )
    line = base.mark_line(strokeWidth=2).encode(color=colours(methods), strokeDash=dashes(methods))
    tips = ["method:N", "epoch:Q", alt.Tooltip("value:Q", format=".4~g")]
    dots = base.mark_point(filled=True, size=30, opacity=0).encode(tooltip=tips)
    return only_shown(alt.layer(line, dots, data=data(found))).properties(width=WIDTH, height=190)


def _thinned(curves: pd.DataFrame) -> pd.DataFrame:
    epochs = sorted(curves["epoch"].unique())
    if len(epochs) <= MOST_EPOCHS:
        return curves
    kept = {epochs[round(place * (len(epochs) - 1) / (MOST_EPOCHS - 1))] for place in range(MOST_EPOCHS)}
    return curves[curves["epoch"].isin(kept)]
