"""Draws far outliers at the edge, so that they do not squeeze the rest."""

from __future__ import annotations

import altair as alt

from msda_bench_report.plots.parts import only_shown, rows_of


def clamped(field: str, low: str | None = None, high: str | None = None, reach: int = 6) -> alt.Chart:
    """Transforms that keep the shown methods and compute the positions at which rows are drawn.

    `at`, `at_low` and `at_high` are the positions of the columns `field`, `low` and `high`. `far` is -1 or 1 for rows
    far outside, which are drawn at the edge, and 0 for the others, which are drawn in place.

    A row is far outside if it lies more than `reach` interquartile ranges of all shown rows beyond their quartiles. If
    its method has four rows or more, the row must also be far from these, or twice as far from all rows.
    """
    ends = {"at": field, "at_low": low or field, "at_high": high or field}
    beyond = f"max(datum.{{0}}lower - datum.{field}, datum.{field} - datum.{{0}}upper)"
    is_far = "datum.out > datum.room * (datum.own || datum.own_n < 4 ? 1 : 2)"
    fences = f"min(datum.{field}, datum.lower - datum.room), max(datum.{field}, datum.upper + datum.room)"
    limits = "datum.least - datum.edge, datum.most + datum.edge"
    chart = (
        only_shown()
        .transform_joinaggregate(lower=f"q1({field})", upper=f"q3({field})", n="count()")
        .transform_joinaggregate(
            own_lower=f"q1({field})", own_upper=f"q3({field})", own_n="count()", groupby=["method"]
        )
        .transform_calculate(
            room=f"{reach} * (datum.upper - datum.lower)",
            out=beyond.format(""),
            own=f"{beyond.format('own_')} > 3 * (datum.own_upper - datum.own_lower)",
        )
        .transform_calculate(fenced="datum.n > 3 && datum.room > 0")
        .transform_calculate(far=f"datum.fenced && {is_far} ? (datum.{field} < datum.lower ? -1 : 1) : 0")
    )
    for end, name in ends.items():
        known = f"(isValid(datum.{name}) ? datum.{name} : datum.{field})"
        kept = f"datum.far != 0 ? null : datum.fenced ? clamp({known}, {fences}) : {known}"
        chart = chart.transform_calculate(**{f"kept_{end}": kept})
    return (
        chart.transform_joinaggregate(least="min(kept_at_low)", most="max(kept_at_high)")
        .transform_calculate(edge="(datum.most - datum.least) * 0.06")
        .transform_calculate(
            **{end: f"isValid(datum.{name}) ? clamp(datum.{name}, {limits}) : null" for end, name in ends.items()}
        )
    )


def pointed(low: str = "left", high: str = "right") -> alt.ShapeValue:
    """Circles, or at the edge arrows that point towards outliers."""
    # Not by alt.when, which validates against the whole schema of Altair.
    below = {"test": "datum.far < 0", "value": f"triangle-{low}"}
    above = {"test": "datum.far > 0", "value": f"triangle-{high}"}
    return alt.ShapeValue("circle", condition=[below, above])


def interval(title: str | list[str], color: alt.Color, tooltip: list[alt.Tooltip]) -> list[alt.Chart]:
    """Bars from `low` to `high` with a mark, arrows on bars that continue beyond the edge, and `text` at the right."""
    across = alt.X("at:Q", title=title, axis=alt.Axis(tickCount=6), scale=alt.Scale(zero=False, nice=False, padding=10))
    low = alt.X("at_low:Q", title=title)
    base = alt.Chart().encode(y=rows_of())
    arrows = [
        base.transform_filter(f"datum.far == 0 && datum.{end} {sign} datum.at_{end}")
        .mark_point(filled=True, size=50, opacity=1, shape=f"triangle-{side}")
        .encode(x=f"at_{end}:Q", color=color)
        for end, side, sign in (("low", "left", "<"), ("high", "right", ">"))
    ]
    bars = base.transform_filter("datum.far == 0").mark_rule(strokeWidth=3)
    dots = base.mark_point(filled=True, size=90, opacity=1)
    return [
        bars.encode(x=low, x2="at_high:Q", color=color, tooltip=tooltip),
        *arrows,
        dots.encode(x=across, color=color, shape=pointed(), tooltip=tooltip),
        base.mark_text(align="left", dx=12).encode(x=alt.value("width"), text="text:N"),
    ]
