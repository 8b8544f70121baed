"""What the charts share: data as safe JSON, colours, panels, the methods that are shown, and room for outliers."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeAlias, TypeVar

import altair as alt
import pandas as pd

from msda_bench.errors import printable

Chart: TypeAlias = alt.Chart | alt.LayerChart | alt.FacetChart | alt.ConcatChart
_Drawn = TypeVar("_Drawn", alt.LayerChart, alt.FacetChart)

WIDTH = 280
"""Pixels across a panel."""
ROW = 22
"""Pixels of a row of a method."""
HUES = ("#2580bd", "#d06a10", "#14926b", "#bb5f94", "#9c7d0a", "#7d63c9", "#7d858c")
"""Colours that colour-blind readers distinguish, with a contrast of 3 to a white and to a dark page."""
SHAPES = ("circle", "square", "diamond", "triangle-up", "cross", "triangle-down", "triangle-right", "triangle-left")
DASHES = ([1, 0], [6, 2], [2, 2], [8, 2, 2, 2], [10, 4])
_NAME = 60


def data(frame: pd.DataFrame) -> alt.InlineData:
    """Rows as plain JSON values: seven significant digits, None where nothing is known, every text printable."""
    columns = {str(name): [_plain(value) for value in frame[name]] for name in frame}
    return alt.InlineData(values=[dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)])


def name_of(value: object) -> str:
    """A method's, target's or source's name as charts show it."""
    return printable(value, _NAME)


def names(frame: pd.DataFrame, column: str) -> list[str]:
    """The names in a column, in the order of their first rows, as charts show them."""
    return list(dict.fromkeys(map(name_of, frame[column].dropna())))


def unit_of(frame: pd.DataFrame) -> str:
    """What the scores of an experiment are."""
    classes = (frame["task"].astype(object) == "classification").any()
    return "accuracy in percent" if classes else "mean squared error, lower is better"


def panels(frame: pd.DataFrame, by: Sequence[str], draw: Callable[[pd.DataFrame], Chart]) -> Chart:
    """One chart for each group of rows, side by side with their names; the chart itself where there is one group.

    Where rows have methods the chart has the parameter `shown`: their names, of which `only_shown` keeps rows.

    Raises:
        ValueError: there are no rows.
    """
    if frame.empty:
        raise ValueError("there is nothing to draw: no rows with what this chart shows")
    varying = [name for name in by if frame[name].nunique() > 1]
    if varying:
        parts = [
            draw(rows).properties(title=", ".join(map(name_of, place)))
            for place, rows in frame.groupby(varying, observed=True, sort=False)
        ]
        chart: Chart = alt.concat(*parts, columns=3).resolve_scale(color="independent", strokeDash="independent")
    else:
        chart = draw(frame)
    shown = [name for column in ("method", "first", "second") if column in frame for name in names(frame, column)]
    # Not by add_params, which moves it into panels and fails where these have rows of their own.
    chart.params = [alt.VariableParameter(name="shown", value=list(dict.fromkeys(shown)))] if shown else alt.Undefined
    return chart


def only_shown(chart: _Drawn) -> _Drawn:
    """A chart of the rows whose method is among the parameter `shown`."""
    return chart.transform_filter("indexof(shown, datum.method) >= 0")


def colours(methods: Sequence[str]) -> alt.Color:
    """A colour for each method, the same whichever others are shown; the legend lists those that are."""
    hues = [HUES[place % len(HUES)] for place in range(len(methods))]
    legend = alt.Legend(title=None, orient="bottom", columns=3, values=alt.ExprRef("shown"), labelLimit=110)
    return alt.Color("method:N", scale=alt.Scale(domain=list(methods), range=hues), legend=legend)


def dashes(methods: Sequence[str]) -> alt.StrokeDash:
    """Dashes beside colours, for readers who see none."""
    kinds = [list(DASHES[place % len(DASHES)]) for place in range(len(methods))]
    legend = alt.Legend(title=None, orient="bottom", columns=3, values=alt.ExprRef("shown"), labelLimit=110)
    return alt.StrokeDash("method:N", scale=alt.Scale(domain=list(methods), range=kinds), legend=legend)


def rows_of(order: str = "order") -> alt.Y:
    """A row for each method, by a column that numbers them."""
    axis = alt.Axis(title=None, labelLimit=120, ticks=False, domain=False, labelPadding=8)
    return alt.Y("method:N", sort=alt.EncodingSortField(field=order, op="min", order="ascending"), axis=axis)


def clamped(
    chart: alt.LayerChart, field: str, low: str | None = None, high: str | None = None, reach: int = 6
) -> alt.LayerChart:
    """Moves what lies far outside to the edge, so that an outlier does not squeeze the rest.

    A row is far outside if it is beyond the fences of all rows that are shown (so many interquartile ranges from the
    quartiles) and, where its method has four rows or more, beyond its own method's; or beyond four times as many. Adds
    `at`, `at_low` and `at_high`, which are to be drawn, and `far`: -1, 0 or 1.

    Args:
        chart: with its rows.
        field: what is drawn.
        low: the lower end of an interval around it.
        high: the upper one.
        reach: interquartile ranges.
    """
    low, high = low or field, high or field
    valued = {end: f"(isValid(datum.{end}) ? datum.{end} : datum.{field})" for end in (low, high)}
    chart = chart.transform_joinaggregate(lower_=f"q1({field})", upper_=f"q3({field})", n_="count()")
    chart = chart.transform_joinaggregate(
        own_lower_=f"q1({field})", own_upper_=f"q3({field})", own_n_="count()", groupby=["method"]
    )
    chart = chart.transform_calculate(room_=f"{reach} * (datum.upper_ - datum.lower_)")
    chart = chart.transform_calculate(
        out_=f"max(datum.lower_ - datum.{field}, datum.{field} - datum.upper_)",
        own_=f"max(datum.own_lower_ - datum.{field}, datum.{field} - datum.own_upper_)"
        " > 3 * (datum.own_upper_ - datum.own_lower_)",
    )
    is_far = "datum.out_ > datum.room_ * (datum.own_ || datum.own_n_ < 4 ? 1 : 4)"
    side = f"datum.{field} < datum.lower_ ? -1 : 1"
    chart = chart.transform_calculate(far=f"datum.n_ > 3 && datum.room_ > 0 && {is_far} ? ({side}) : 0")
    within = "datum.lower_ - datum.room_, datum.upper_ + datum.room_"
    for place, name in (("low_", low), ("high_", high)):
        kept = f"datum.n_ > 3 && datum.room_ > 0 ? clamp({valued[name]}, {within}) : {valued[name]}"
        chart = chart.transform_calculate(**{place: f"datum.far != 0 ? null : {kept}"})
    chart = chart.transform_joinaggregate(least_="min(low_)", most_="max(high_)")
    chart = chart.transform_calculate(edge_="(datum.most_ - datum.least_) * 0.06")
    limits = "datum.least_ - datum.edge_, datum.most_ + datum.edge_"
    ends = {"at": field, "at_low": low, "at_high": high}
    return chart.transform_calculate(
        **{end: f"isValid(datum.{name}) ? clamp(datum.{name}, {limits}) : null" for end, name in ends.items()}
    )


def pointed() -> Any:
    """Circles, and at the edge arrows towards what lies beyond it."""
    left = alt.when("datum.far < 0").then(alt.value("triangle-left"))
    return left.when("datum.far > 0").then(alt.value("triangle-right")).otherwise(alt.value("circle"))


def edges(low: str, high: str, color: alt.Color) -> list[alt.Chart]:
    """Arrows where an interval goes on beyond the edge."""
    return [
        alt.Chart()
        .transform_filter(f"datum.{end} {sign} datum.at_{side}")
        .mark_point(filled=True, size=50, opacity=1, shape=f"triangle-{shape}")
        .encode(x=f"at_{side}:Q", y=rows_of(), color=color)
        for end, side, sign, shape in ((low, "low", "<", "left"), (high, "high", ">", "right"))
    ]


def scale_of(values: pd.Series[float], padding: int = 0) -> alt.Scale:
    """A scale that need not begin at 0, logarithmic where values are positive and span more than a factor 20."""
    known = values.dropna()
    if len(known) and known.min() > 0 and known.max() > 20 * known.min():
        return alt.Scale(type="log", padding=padding)
    return alt.Scale(zero=False, padding=padding)


def _plain(value: Hashable) -> Any:
    if value is None or value is pd.NA or value != value:  # noqa: PLR0124 - NaN
        return None
    if isinstance(value, str):
        return name_of(value)
    if isinstance(value, bool) or pd.api.types.is_bool(value):
        return bool(value)
    number = float(value)  # type: ignore[arg-type]
    if number in {float("inf"), float("-inf")}:
        return None
    return int(number) if number.is_integer() and abs(number) < 2**53 else float(f"{number:.7g}")
