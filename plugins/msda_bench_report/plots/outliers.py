"""Draws far outliers at the edge, so that they do not squeeze the rest."""

from __future__ import annotations

from typing import Any

import altair as alt

from msda_bench_report.plots.parts import only_shown, rows_of


def clamped(field: str, interval: tuple[str, str] | None = None, reach: int = 6) -> alt.Chart:
    """Transforms that keep the shown methods and compute the positions at which rows are drawn.

    `at` is the position of the column `field`; `at_low` and `at_high` are those of the ends of an interval. `far` is -1
    or 1 for rows far outside, which are drawn at the edge, and 0 for the others, which are drawn in place.

    A row is far outside if it lies more than `reach` interquartile ranges of all shown rows beyond their quartiles. If
    its method has four rows or more, the row must also be far from these, or twice as far from all rows.
    """
    low, high = interval or (field, field)
    quartiles: dict[str, Any] = {"own_lower": f"q1({field})", "own_upper": f"q3({field})", "own_n": "count()"}
    steps = only_shown().transform_joinaggregate(lower=f"q1({field})", upper=f"q3({field})", n="count()")
    steps = steps.transform_joinaggregate(**quartiles, groupby=["method"]).transform_calculate(
        value=f"datum.{field}",
        room=f"datum.n > 3 ? {reach} * (datum.upper - datum.lower) : 0",
        out="max(datum.lower - datum.value, datum.value - datum.upper)",
        own_room="3 * (datum.own_upper - datum.own_lower)",
        own_out="max(datum.own_lower - datum.value, datum.value - datum.own_upper)",
        limit="datum.room * (datum.own_n < 4 || datum.own_out > datum.own_room ? 1 : 2)",
        far="datum.room > 0 && datum.out > datum.limit ? (datum.value < datum.lower ? -1 : 1) : 0",
        floor="datum.room > 0 ? min(datum.value, datum.lower - datum.room) : -MAX_VALUE",
        ceiling="datum.room > 0 ? max(datum.value, datum.upper + datum.room) : MAX_VALUE",
        # An end of an interval that is not known is where the value is.
        start=f"isValid(datum.{low}) ? datum.{low} : datum.value",
        end=f"isValid(datum.{high}) ? datum.{high} : datum.value",
        kept_start="datum.far ? null : clamp(datum.start, datum.floor, datum.ceiling)",
        kept_end="datum.far ? null : clamp(datum.end, datum.floor, datum.ceiling)",
    )
    steps = steps.transform_joinaggregate(least="min(kept_start)", most="max(kept_end)")
    return steps.transform_calculate(
        edge="(datum.most - datum.least) * 0.06",
        **{
            at: f"isValid(datum.{name}) ? clamp(datum.{name}, datum.least - datum.edge, datum.most + datum.edge) : null"
            for at, name in {"at": field, "at_low": low, "at_high": high}.items()
        },
    )


def pointed() -> alt.ShapeValue:
    """Circles, or at the edge arrows that point towards outliers."""
    # Not by alt.when, which validates against the whole schema of Altair.
    below = {"test": "datum.far < 0", "value": "triangle-left"}
    above = {"test": "datum.far > 0", "value": "triangle-right"}
    return alt.ShapeValue("circle", condition=[below, above])


def interval(title: str | list[str], color: alt.Color, tooltip: list[alt.Tooltip]) -> list[alt.Chart]:
    """Bars from `low` to `high` with a mark, arrows on bars that continue beyond the edge, and `text` at the right."""
    across = alt.X("at:Q", title=title, axis=alt.Axis(tickCount=6), scale=alt.Scale(zero=False, nice=False, padding=10))
    low = alt.X("at_low:Q", title=title)
    base = alt.Chart().encode(y=rows_of())
    arrows = [
        base.transform_filter(f"datum.far == 0 && datum.{end} {sign} datum.at_{end}")
        .mark_point(filled=True, size=50, opacity=1, shape=f"triangle-{side}")
        .encode(x=alt.X(f"at_{end}:Q"), color=color)
        for end, side, sign in (("low", "left", "<"), ("high", "right", ">"))
    ]
    bars = base.transform_filter("datum.far == 0").mark_rule(strokeWidth=3)
    dots = base.mark_point(filled=True, size=90, opacity=1)
    return [
        bars.encode(x=low, x2=alt.X2("at_high:Q"), color=color, tooltip=tooltip),
        *arrows,
        dots.encode(x=across, color=color, shape=pointed(), tooltip=tooltip),
        base.mark_text(align="left", dx=12).encode(x=alt.value("width"), text=alt.Text("text:N")),
    ]
