"""Draws weights of the sources, risks and gaps over the epochs, as means over seeds."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from msda_bench.results.argument_checks import argument
from msda_bench.results.words import name_of
from msda_bench_report.plots import parts
from msda_bench_report.plots.parts import KINDS, WIDTH, layered, names, tips
from msda_bench_report.plots.vega import Layer, Spec, channel, facetted

_MOST_EPOCHS, _LEAST_EPOCHS = 40, 8
"""The most and fewest epochs in a line; of more, evenly spaced ones are drawn, with the first and the last."""
_MOST_ROWS = 1500
"""The maximum number of points in the lines of a panel, unless `_LEAST_EPOCHS` needs more."""
MOST_LINES = 14
"""The number of sources beyond which their lines cannot be read."""
_SPAN = 0.05
"""The minimum reach of a scale around equal weights, so that noise does not look like a preference."""
_FAR = 20
"""Values of mixed signs beyond this multiple of the upper quartile are drawn on a logarithmic scale."""
_EQUAL = 1e-6
"""Weights that differ from equal ones, or between seeds, by no more than this are equal."""
LAST = 0
"""Marks the last epoch of each run, which may differ between runs."""
_PANEL = ["experiment", "target"]
_METHOD = [*_PANEL, "method"]


def _taken(curves: str | Path | pd.DataFrame) -> pd.DataFrame:
    kind = KINDS["curves"]
    if isinstance(curves, pd.DataFrame) and "seeds" in curves:
        kind = replace(kind, columns=[name for name in kind.columns if name != "seed"])
    return kind.take(curves)


def by_epoch(curves: pd.DataFrame) -> pd.DataFrame:
    """Averages curves over seeds, by method, source and epoch; `LAST` stands for the last epoch of each run.

    Args:
        curves: a frame from `load_curves`; a frame from this function is returned unchanged.

    Returns:
        `experiment, target, method, source, pooled, epoch, risk, gap, weight`, `deviation` (standard deviation of
        the weight over seeds, NaN for one seed), `seeds` (their number) and `equal` (1 / number of sources).
    """
    if "seeds" in curves:
        return curves
    ends = _grouped(curves, "seed")["epoch"].transform("max")
    last = curves[curves["epoch"] == ends].assign(epoch=LAST)
    means = pd.concat([_over_seeds(curves), _over_seeds(last)])
    seeds = _grouped(means, "epoch")["seeds"]
    means["equal"] = seeds.transform("max") / seeds.transform("sum")
    # The order is common to all targets, so that a source has one colour.
    order = dict.fromkeys(map(str, means.sort_values("pooled", kind="stable")["source"]))
    means["source"] = pd.Categorical(means["source"].astype(object), [*order])
    return means.reset_index(drop=True)


def _grouped(curves: pd.DataFrame, *more: str) -> Any:
    """The rows of each method at each target, and of each value of these columns."""
    return curves.groupby([*_METHOD, *more], observed=True, sort=False)


def _over_seeds(curves: pd.DataFrame) -> pd.DataFrame:
    groups = _grouped(curves, "source", "pooled", "epoch")
    means: pd.DataFrame = groups[["risk", "gap", "weight"]].mean()
    means["deviation"] = groups["weight"].std()
    means["seeds"] = groups.size()
    return means.reset_index()


def weighing(curves: pd.DataFrame) -> pd.DataFrame:
    """The rows of `by_epoch` for methods that weigh single sources, and not all of them equally."""
    means = by_epoch(curves)
    single = means[~means["pooled"].astype(bool) & (means["equal"] < 1)]
    away = (single["weight"] - single["equal"]).abs()
    uneven = (away > _EQUAL) | (single["deviation"] > _EQUAL)
    by_method = [single[name].astype(object) for name in ("experiment", "method")]
    return single[uneven.groupby(by_method).transform("any")]


def weights(curves: str | Path | pd.DataFrame) -> Spec:
    """Draws the weight of each source over the epochs, one row per method and one panel per target.

    A line is the mean over seeds, with a band of one standard deviation. Grey: equal weights.

    Args:
        curves: a result folder, or a frame from `load_curves`.

    Raises:
        ValueError: no method weighs single sources.
    """
    return parts.panels("curves", weighing(_taken(curves)), _PANEL, _weights)


def _weights(rows: pd.DataFrame) -> Spec:
    thinned = _thinned(rows, lines=len(rows[["method", "source"]].drop_duplicates()))
    lines = thinned[["method", "source", "epoch", "equal", "weight"]]
    half = thinned["deviation"].fillna(0)
    lines = lines.assign(low=lines["weight"] - half, high=lines["weight"] + half)
    known = [name_of(name) for name in rows["source"].cat.categories]
    below = parts.legend(3, symbolOpacity=1, symbolType="stroke", symbolStrokeWidth=2)
    look = parts.look("source", names(rows, "source"), below, known)
    color = look["color"]
    up = channel("weight:Q", title="weight", scale={"zero": False})
    low = channel("low:Q", title="weight")
    seen = tips("method source epoch", "weight low high", ".3f")
    base = Layer().encode(x=_epoch())
    marks = [
        base.draw("point", opacity=0).encode(y=channel("floor:Q")),
        base.draw("point", opacity=0).encode(y=channel("ceiling:Q")),
        Layer().draw("rule", opacity=0.35).encode(y=channel("mean(equal):Q")),
        base.draw("area", opacity=0.22).encode(y=low, y2={"field": "high"}, color=color),
        base.draw("line", strokeWidth=2).encode(y=up, **look),
        base.dots(26, opacity=0).encode(y=up, color=color, tooltip=seen),
    ]
    header = {"title": None, "orient": "top", "labelAnchor": "start", "labelPadding": 2, "labelLimit": WIDTH}
    row = channel("method:N", header=header, sort=names(rows, "method"))
    steps = Layer().calculate(floor=f"max(0, datum.equal - {_SPAN})", ceiling=f"datum.equal + {_SPAN}")
    chart = layered(lines, *marks, width=WIDTH, height=90)
    return facetted(chart, row, steps.filter(parts.SHOWN), spacing=6)


def weight_map(curves: str | Path | pd.DataFrame) -> Spec:
    """Draws the weights at the last epoch, mean over seeds; colours show the difference from equal weights.

    Args:
        curves: a result folder, or a frame from `load_curves`.

    Raises:
        ValueError: no method weighs single sources.
    """
    return parts.panels("curves", last_weights(_taken(curves)), _PANEL, _weight_map)


def last_weights(curves: pd.DataFrame) -> pd.DataFrame:
    """The rows of `weighing` at the last epoch."""
    weighed = weighing(curves)
    return weighed[weighed["epoch"] == LAST]


def _weight_map(rows: pd.DataFrame) -> Spec:
    last = rows[["method", "source", "seeds", "weight", "equal"]]
    number = channel("weight:Q", format=".2f")
    seen = tips("method source seeds", "weight equal", ".3f")
    steps = parts.only_shown().calculate(away="datum.weight - datum.equal")
    return parts.matrix(last, "source", number, seen, steps, _SPAN)


def curves(curves: str | Path | pd.DataFrame, what: Literal["risk", "gap"] = "risk") -> Spec:
    """Draws risk or gap over the epochs, mean over sources and seeds, one panel per target.

    Args:
        curves: a result folder, or a frame from `load_curves`.
        what: risk or gap; methods without a discrepancy have no gap and are skipped.

    Raises:
        ValueError: no run has curves, or no method has a gap.
    """
    curves = _taken(curves)
    what = argument("what", what, Literal["risk", "gap"])
    return parts.panels("curves", over_sources(curves, what), _PANEL, lambda rows: _curves(rows, what))


def over_sources(curves: pd.DataFrame, what: str) -> pd.DataFrame:
    """The mean over sources and seeds at each epoch as `value`, for methods with any nonzero value."""
    means = by_epoch(curves)
    values: pd.DataFrame = _grouped(means[means["epoch"] != LAST], "epoch")[what].mean().rename("value").reset_index()
    is_nonzero = values["value"].abs() > 0
    return values[is_nonzero.groupby(values["method"].astype(object)).transform("any")]


def _curves(rows: pd.DataFrame, what: str) -> Spec:
    lines = _thinned(rows, lines=rows["method"].nunique())[["method", "epoch", "value"]]
    title = {"risk": "risk of the sources", "gap": "gap between source and target"}[what]
    base = Layer().encode(x=_epoch(), y=_values(lines["value"], title))
    line = base.draw("line", strokeWidth=2).encode(**parts.by_method(names(rows, "method")))
    dots = base.dots(30, opacity=0).encode(tooltip=tips("method epoch", "value"))
    return layered(lines, line, dots, steps=parts.only_shown(), width=WIDTH, height=190)


def _values(values: pd.Series[float], title: str) -> Spec:
    """An axis for values of any sign, on which large values of one method do not squeeze the others."""
    sizes = values.abs()
    usual = float(sizes.quantile(0.75))
    most = float(sizes.max())
    if values.min() > 0 or most <= _FAR * usual or not usual:
        return channel("value:Q", title=title, scale=parts.scale_of(values, padding=6))
    least, largest = (math.ceil(math.log10(size)) for size in (usual, most))
    powers = [10.0**power for power in range(least, largest + 1)]
    axis = {"values": [*(-power for power in powers), 0, *powers]}
    scale = {"type": "symlog", "constant": usual, "padding": 6, "nice": False}
    return channel("value:Q", title=f"{title}, log scale", scale=scale, axis=axis)


def _epoch() -> Spec:
    return channel("epoch:Q", title="epoch", axis={"tickMinStep": 1}, scale={"nice": False, "zero": False})


def _thinned(rows: pd.DataFrame, lines: int) -> pd.DataFrame:
    epochs = sorted({*rows["epoch"]} - {LAST})
    most = max(_LEAST_EPOCHS, min(_MOST_EPOCHS, _MOST_ROWS // lines))
    step = max(1, (len(epochs) - 1) / (most - 1))
    drawn = {epochs[round(place * step)] for place in range(min(most, len(epochs)))}
    return rows[rows["epoch"].isin(drawn)]
