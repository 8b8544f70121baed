"""Charts over the epochs: weights of the sources, risks and gaps."""

from __future__ import annotations

from typing import Literal

import altair as alt
import pandas as pd

from msda_bench.results.plots import parts
from msda_bench.results.plots.parts import HUES, ROW, WIDTH, Chart, layered, name_of, names, tips

MOST_EPOCHS, LEAST_EPOCHS = 40, 8
"""Epochs of a line; of more, evenly spaced ones are drawn, the first and the last among them; fewer for many lines."""
MOST_ROWS = 1500
"""Points of all lines of a panel, as far as `LEAST_EPOCHS` lets them be so few."""
MOST_LINES = 14
"""Sources beyond which their lines, and numbers in their columns, cannot be read."""
SPAN = 0.05
"""The least deviation from equal weights that a scale reaches, so that noise does not look like a preference."""
DIVERGING = ["#e59a52", "#f1f1ee", "#62abdb"]
"""Less than equal weight, equal, and more: light enough for dark numbers."""
_RUN = ["experiment", "target", "method", "seed"]


def weighing(curves: pd.DataFrame) -> pd.DataFrame:
    """The rows of methods that give single sources weights of their own, with `equal`: 1 / number of sources."""
    single = curves[~curves["pooled"].astype(bool)]
    equal = 1 / single.groupby([*_RUN, "epoch"], observed=True)["source"].transform("nunique")
    uneven = (single["weight"] - equal).abs() > 1e-6  # noqa: PLR2004
    own = uneven.groupby([single["experiment"].astype(object), single["method"].astype(object)]).transform("any")
    return single.assign(equal=equal)[own & (equal < 1)]


def weights(curves: pd.DataFrame) -> Chart:
    """The weight of each source over the epochs; a row a method, a panel a target.

    A line is the mean over seeds, and its band reaches one standard deviation to both sides. Dashed: equal weights.

    Args:
        curves: of `load_curves`.

    Raises:
        ValueError: no method gives single sources weights of their own.
    """
    return parts.panels(weighing(curves), ("experiment", "target"), _weights)


def _weights(curves: pd.DataFrame) -> Chart:
    kept = _thinned(curves, lines=len(curves[["method", "source"]].drop_duplicates()))
    of = kept.groupby(["method", "source", "epoch"], observed=True, sort=False)
    found = of.agg(mean=("weight", "mean"), deviation=("weight", "std"), equal=("equal", "mean")).reset_index()
    half = found["deviation"].fillna(0)
    found = found.assign(low=found["mean"] - half, high=found["mean"] + half).drop(columns="deviation")
    sources, below = names(curves, "source"), parts.legend(3, symbolOpacity=1)
    across, up = _epoch(), alt.Y("mean:Q", title="weight", scale=alt.Scale(zero=False))
    colour = parts.hue("source", sources, below)
    # Colours come round again after as many sources as there are hues; then the dashes change.
    kinds = parts.DASHES
    dashes = alt.Scale(domain=sources, range=[kinds[place // len(HUES) % len(kinds)] for place in range(len(sources))])
    dash = alt.StrokeDash("source:N", scale=dashes, legend=below)
    seen = tips("method source epoch", "mean low high", ".3f")
    base = alt.Chart()
    marks = [
        *(base.mark_point(opacity=0).encode(x=across, y=f"{end}:Q") for end in ("floor", "ceiling")),
        base.mark_rule(strokeDash=[4, 3], opacity=0.6).encode(y="mean(equal):Q"),
        base.mark_area(opacity=0.22).encode(x=across, y=alt.Y("low:Q", title="weight"), y2="high:Q", color=colour),
        base.mark_line(strokeWidth=2).encode(x=across, y=up, color=colour, strokeDash=dash),
        base.mark_point(filled=True, size=26, opacity=0).encode(x=across, y=up, color=colour, tooltip=seen),
    ]
    header = alt.Header(title=None, orient="top", labelAnchor="start", labelPadding=2, labelLimit=WIDTH)
    row = alt.Row("method:N", header=header, sort=names(curves, "method"))
    rows = layered(found, *marks).properties(width=WIDTH, height=90).facet(row=row, spacing=6)
    rows = rows.transform_calculate(floor=f"max(0, datum.equal - {SPAN})", ceiling=f"datum.equal + {SPAN}")
    return rows.transform_filter(parts.SHOWN)


def weight_map(curves: pd.DataFrame) -> Chart:
    """The weights at the last epoch, mean over seeds; colours show how far they are from equal weights.

    Args:
        curves: of `load_curves`.

    Raises:
        ValueError: no method gives single sources weights of their own.
    """
    return parts.panels(last_weights(curves), ("experiment", "target"), _weight_map)


def last_weights(curves: pd.DataFrame) -> pd.DataFrame:
    """The mean over seeds of each source's weight at a run's last epoch.

    Returns:
        `experiment, target, method, source, weight, equal` (1 / number of sources), `seeds` (how many).
    """
    single = weighing(curves)
    last = single["epoch"].groupby([single[name] for name in _RUN], observed=True).transform("max")
    of = single[single["epoch"] == last].groupby([*_RUN[:3], "source"], observed=True, sort=False)
    return of.agg(weight=("weight", "mean"), equal=("equal", "mean"), seeds=("seed", "nunique")).reset_index()


def by_domain(curves: pd.DataFrame) -> pd.DataFrame:
    """Curves with the parts of each split source summed up into it: weights added, risks and gaps averaged."""
    of = curves.groupby([*_RUN, "epoch", "part_of"], observed=True, sort=False)
    found = of.agg(risk=("risk", "mean"), gap=("gap", "mean"), weight=("weight", "sum"), pooled=("pooled", "any"))
    return found.reset_index().assign(source=lambda rows: rows["part_of"])


def _weight_map(found: pd.DataFrame) -> Chart:
    sources = {name: place for place, name in enumerate(dict.fromkeys(found["source"]))}
    methods = {name: place for place, name in enumerate(dict.fromkeys(found["method"]))}
    found = found.assign(
        away=found["weight"] - found["equal"],
        order=found["method"].astype(object).map(methods),
        column=found["source"].map(sources),
    )
    across, up = parts.columns_of("source", "column", labelAngle=-40, labelLimit=90), parts.rows_of()
    scale = alt.Scale(domain=[-1, 0, 1], range=DIVERGING, interpolate="rgb")
    colour = alt.Color("tone:Q", scale=scale, legend=None)
    seen = tips("method source seeds", "weight equal", ".3f")
    marks = [alt.Chart().mark_rect().encode(x=across, y=up, color=colour, tooltip=seen)]
    if len(sources) <= MOST_LINES:
        number = alt.Chart().mark_text(fontSize=10, color="#1b1f23")
        marks.append(number.encode(x=across, y=up, text=alt.Text("weight:Q", format=".2f")))
    layers = layered(found, *marks).transform_filter(parts.SHOWN).transform_calculate(size="abs(datum.away)")
    layers = layers.transform_joinaggregate(most="max(size)")
    layers = layers.transform_calculate(tone=f"datum.away / max({SPAN}, datum.most)")
    return layers.properties(width=max(WIDTH // 2, min(2 * WIDTH, 40 * len(sources))), height=alt.Step(ROW + 2))


def curves(curves: pd.DataFrame, what: Literal["risk", "gap"] = "risk") -> Chart:
    """Risk or gap over the epochs, mean over sources and seeds; a panel a target.

    Args:
        curves: of `load_curves`.
        what: which of both; methods without a discrepancy have no gap and are left out.

    Raises:
        ValueError: no run has curves, or no method a gap.
    """
    found = curves.assign(value=curves[what])
    if what == "gap":
        found = found[(found["value"].abs() > 0).groupby(found["method"].astype(object)).transform("any")]
    return parts.panels(found, ("experiment", "target"), lambda rows: _curves(rows, what))


def _curves(rows: pd.DataFrame, what: str) -> Chart:
    kept = _thinned(rows, lines=rows["method"].nunique())
    kept = kept.assign(method=kept["method"].astype(object).map(name_of))
    found = kept.groupby(["method", "epoch"], sort=False)["value"].mean().reset_index()
    title = {"risk": "risk of the sources", "gap": "gap between source and target"}[what]
    base = alt.Chart().encode(x=_epoch(), y=alt.Y("value:Q", title=title, scale=parts.scale_of(found["value"])))
    line = base.mark_line(strokeWidth=2).encode(**parts.by_method(names(rows, "method")))
    dots = base.mark_point(filled=True, size=30, opacity=0).encode(tooltip=tips("method epoch", "value"))
    return layered(found, line, dots).transform_filter(parts.SHOWN).properties(width=WIDTH, height=190)


def _epoch() -> alt.X:
    return alt.X("epoch:Q", title="epoch", axis=alt.Axis(tickMinStep=1), scale=alt.Scale(nice=False, zero=False))


def _thinned(curves: pd.DataFrame, lines: int) -> pd.DataFrame:
    epochs = sorted(curves["epoch"].unique())
    most = max(LEAST_EPOCHS, min(MOST_EPOCHS, MOST_ROWS // lines))
    if len(epochs) <= most:
        return curves
    kept = {epochs[round(place * (len(epochs) - 1) / (most - 1))] for place in range(most)}
    return curves[curves["epoch"].isin(kept)]
