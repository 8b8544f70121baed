"""The common parts of charts: data as safe JSON, colours, panels, shown methods, axes, outliers; and still pictures."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import altair as alt
import pandas as pd
from altair.utils.schemapi import debug_mode

from msda_bench.results.argument_checks import FrameSchema, argument
from msda_bench.results.compare import COMPARISONS
from msda_bench.results.criteria import CRITERIA, SENSITIVITY
from msda_bench.results.files import replace_file
from msda_bench.results.frame import CURVES, RUNS
from msda_bench.results.leaderboard import LEADERBOARD
from msda_bench.results.predictions import PER_CLASS
from msda_bench.results.runs import known_results
from msda_bench.results.words import name_of
from msda_bench.suite.plan import DEFAULT_METRICS, MetricInfo

Chart: TypeAlias = alt.Chart | alt.LayerChart | alt.FacetChart | alt.ConcatChart | alt.VConcatChart

KINDS: Mapping[str, FrameSchema] = MappingProxyType(
    {kind.parameter: kind for kind in (COMPARISONS, CRITERIA, CURVES, LEADERBOARD, PER_CLASS, RUNS, SENSITIVITY)}
)
"""What takes a frame, or a folder that has it, by the name of the parameter, such as `leaderboard`."""
COLOURS = {"#010101": "var(--ink)", "#020202": "var(--muted)", "#030303": "var(--line)"}
"""Placeholders that the page replaces with the colours of its theme."""
_INK, _MUTED, _LINE = COLOURS
_FONT = "system-ui, -apple-system, Segoe UI, Roboto, Noto Sans, Liberation Sans, Arial, sans-serif"
CONFIG: dict[str, Any] = {
    "background": None,
    "font": _FONT,
    "view": {"stroke": None},
    "axis": {
        "labelColor": _MUTED,
        "titleColor": _MUTED,
        "gridColor": _LINE,
        "domainColor": _LINE,
        "tickColor": _LINE,
        "labelFontSize": 11,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
        "titlePadding": 8,
        "labelSeparation": 8,
    },
    "axisY": {"labelColor": _INK},
    "axisYQuantitative": {"labelColor": _MUTED},
    "legend": {"labelColor": _INK, "titleColor": _MUTED, "labelFontSize": 11, "titleFontWeight": "normal"},
    "header": {"labelColor": _INK, "labelFontSize": 11, "labelFontWeight": 600},
    "text": {"color": _INK, "fontSize": 11},
    "rule": {"color": _INK},
}
"""The style of charts; the page's script inserts the colours of the theme."""
WIDTH = 280
"""The width of a panel in pixels."""
ROW = 24
"""The height of a method's row in pixels."""
HUES = ("#2580bd", "#d06a10", "#14926b", "#bb5f94", "#9c7d0a", "#7d63c9", "#7d858c")
"""Colours that colour-blind readers can distinguish, with a contrast of 3 on a white and on a dark page."""
BLUE, ORANGE, GREEN, *_, GREY = HUES
OF_REFERENCE = alt.ColorValue(BLUE, condition=[{"test": "datum.reference", "value": GREY}])
"""Grey for references, blue for the other methods."""
# As objects, since Altair takes long to find out what `alt.value` is meant for.
AT_RIGHT = alt.XValue("width")  # type: ignore[no-untyped-call]
"""Beside the plot."""
AT_TOP, AT_BOTTOM = alt.YValue(0), alt.Y2Value("height")  # type: ignore[no-untyped-call]
_DASHES = ([1, 0], [6, 2], [2, 2], [8, 2, 2, 2], [10, 4])
_DIVERGING = ["#e59a52", "#f1f1ee", "#62abdb"]
"""The colours of less, equal and more, light enough for dark numbers."""
NUMBERS = "#1b1f23"
"""The colour of numbers and lines on these."""
_MOST_NUMBERS = 14
"""The number of columns of a matrix beyond which its numbers cannot be read."""
SHOWN = "indexof(shown, datum.method) >= 0"
"""A Vega expression: whether a row's method is in the parameter `shown`."""


def layered(frame: pd.DataFrame, *layers: alt.Chart, steps: alt.Chart | None = None, **size: Any) -> alt.LayerChart:
    """Layers marks on rows of plain JSON values: seven significant digits, None for missing values, printable texts.

    `steps` is a chart without marks that holds the transforms of all layers, since adding one to a chart copies layers.
    """
    columns = {str(name): _plain(frame[name]) for name in frame}
    rows = tuple(dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
    data = alt.InlineData(values=rows)  # a tuple, since Altair copies lists
    chart = alt.LayerChart(data=data, transform=steps.transform if steps else alt.Undefined, **size)
    chart.layer = [*layers]  # given above, Altair would copy each of them four times, in search of what they share
    return chart


def only_shown() -> alt.Chart:
    """A chart with only the filter for the shown methods, to which other transforms can be added."""
    return alt.Chart().transform_filter(SHOWN)


def names(frame: pd.DataFrame, column: str) -> list[str]:
    """The names in a column as charts show them, in the order of their first rows."""
    return list(dict.fromkeys(map(name_of, frame[column].dropna().unique())))


def measure_of(frame: pd.DataFrame) -> MetricInfo:
    """The metric of an experiment's scores: that of its suite, or the default of its task."""
    names, results = set(frame["experiment"].astype(object)), known_results(frame)
    tables = results.plan.experiments if results is not None else ()
    shown = [table.metric for table in tables if table.name in names and table.metric]
    task = frame["task"].astype(object).iloc[0]
    if task not in DEFAULT_METRICS:
        raise ValueError(f"the frame has the task {task!r}, which is neither {' nor '.join(DEFAULT_METRICS)}")
    return shown[0] if shown else DEFAULT_METRICS[task]


def panels(parameter: str, frame: pd.DataFrame, by: Sequence[str], draw: Callable[[pd.DataFrame], Chart]) -> Chart:
    """Draws one chart for each group of rows, side by side with titles; a single chart for one group.

    If the rows have methods, the chart has the parameter `shown` with their names, by which `SHOWN` filters.

    Raises:
        ValueError: the frame is empty.
    """
    if frame.empty:
        raise ValueError(f"{parameter}: there is nothing to draw: no rows with what this chart shows")
    varying = [name for name in by if frame[name].nunique() > 1]
    with debug_mode(arg=False):  # skips repeated validation of the data against Vega-Lite's schema
        if varying:
            groups = frame.groupby(varying, observed=True, sort=False)
            made = [draw(rows).properties(title=", ".join(map(name_of, place))) for place, rows in groups]
            chart: Chart = alt.concat(*made, columns=3).resolve_scale(color="independent", strokeDash="independent")
        else:
            chart = draw(frame)
    shown = [name for column in ("method", "first", "second") if column in frame for name in names(frame, column)]
    # Not by add_params, which moves the parameter into panels and fails if these have rows themselves.
    chart.params = [alt.VariableParameter(name="shown", value=list(dict.fromkeys(shown)))] if shown else alt.Undefined
    return chart


def tips(words: str, numbers: str, form: str = ".4~g") -> list[alt.Tooltip]:
    """Tooltips: columns of words, and columns of numbers."""
    return [
        *(alt.Tooltip(name, type="nominal") for name in words.split()),
        *(alt.Tooltip(name, type="quantitative", format=form) for name in numbers.split()),
    ]


def legend(columns: int = 1, **options: Any) -> alt.Legend:
    """A legend under a chart."""
    limit = {1: 320, 2: 160}.get(columns, 110)
    return alt.Legend(**{"title": None, "orient": "bottom", "columns": columns, "labelLimit": limit} | options)


def by_method(methods: Sequence[str]) -> dict[str, Any]:
    """A colour and dashes for each method, independent of which methods are shown; the legend lists the shown ones."""
    return look("method", methods, legend(3, values=alt.ExprRef("shown")))


def look(column: str, domain: Sequence[str], below: alt.Legend, known: Sequence[str] = ()) -> dict[str, Any]:
    """A colour for each name, equal in all charts of the known names, and dashes for readers who see no colours."""
    places = [(known or domain).index(name) for name in domain]
    hues = [HUES[place % len(HUES)] for place in places]
    dashes = [_DASHES[place % len(_DASHES)] for place in places]
    common: dict[str, Any] = {"shorthand": column, "type": "nominal", "legend": below}
    return {
        "color": alt.Color(**common, scale=alt.Scale(domain=list(domain), range=hues)),
        "strokeDash": alt.StrokeDash(**common, scale=alt.Scale(domain=list(domain), range=dashes)),
    }


def kinds(column: str, known: Mapping[str, str], used: pd.Series[Any], title: str | None = None) -> alt.Color:
    """The colours of those known kinds that occur."""
    there = [kind for kind in known if (used == kind).any()]
    scale = alt.Scale(domain=there, range=[known[kind] for kind in there])
    return alt.Color(column, type="nominal", scale=scale, legend=legend(title=title))


def rows_of(column: str = "method", order: str = "order", **options: Any) -> alt.Y:
    """A row for each name, ordered by a column of numbers."""
    return alt.Y(**_names(column, order, options))


def columns_of(column: str, **options: Any) -> alt.X:
    """A column for each name, ordered by the numbers in `column`."""
    return alt.X(**_names(column, "column", options))


def _names(column: str, order: str, options: dict[str, Any]) -> dict[str, Any]:
    plain = {"title": None, "labelLimit": 120, "ticks": False, "domain": False, "labelPadding": 6}
    sort = alt.EncodingSortField(field=order, op="min")
    return {"shorthand": column, "type": "nominal", "sort": sort, "axis": alt.Axis(**plain | options)}


def matrix(
    rows: pd.DataFrame,
    column: str,
    number: alt.Text,
    tooltip: list[alt.Tooltip],
    steps: alt.Chart,
    span: float,
    label: str | None = None,
) -> alt.LayerChart:
    """Draws one row per method and one column per name, with numbers if there are few enough columns to read them.

    Colours show `away`, which `steps` computes, on a scale around 0 that reaches at least `span` to both sides. `label`
    is a Vega expression for the names of columns. Rows and columns are ordered by the numbers in `order` and `column`,
    if the frame has them, and by their first rows otherwise.
    """
    columns, methods = names(rows, column), names(rows, "method")
    places = {
        "order": [methods.index(name_of(name)) for name in rows["method"]],
        "column": [columns.index(name_of(name)) for name in rows[column]],
    }
    places = {name: place for name, place in places.items() if name not in rows}
    short = max(map(len, columns)) < 4  # noqa: PLR2004
    labels: dict[str, Any] = {"labelAngle": 0, "labelOverlap": True} if short else {"labelAngle": -40, "labelLimit": 90}
    if label is not None:
        labels["labelExpr"] = label
    across, up = columns_of(column, **labels), rows_of()
    scale = alt.Scale(domain=[-1, 0, 1], range=_DIVERGING, interpolate="rgb")
    cells = alt.Chart().mark_rect().encode(x=across, y=up, color=alt.Color("tone:Q", scale=scale, legend=None))
    marks = [cells.encode(tooltip=tooltip)]
    if len(columns) <= _MOST_NUMBERS:
        marks.append(alt.Chart().mark_text(fontSize=10, color=NUMBERS).encode(x=across, y=up, text=number))
    steps = steps.transform_calculate(size="abs(datum.away)").transform_joinaggregate(most="max(size)")
    steps = steps.transform_calculate(tone=f"datum.away / max({span}, datum.most)")
    width = max(WIDTH // 2, min(2 * WIDTH, 40 * len(columns)))
    return layered(rows.assign(**places), *marks, steps=steps, width=width, height=alt.Step(ROW + 2))


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
        # An end of an interval that is not known is where the value is.
        start=f"isValid(datum.{low}) ? datum.{low} : datum.value",
        end=f"isValid(datum.{high}) ? datum.{high} : datum.value",
    )
    # Most intervals are drawn whole, however wide they are beside the distances of their values.
    steps = steps.transform_joinaggregate(usual_start="q1(start)", usual_end="q3(end)").transform_calculate(
        floor="datum.room > 0 ? min(datum.value, datum.lower - datum.room, datum.usual_start) : -MAX_VALUE",
        ceiling="datum.room > 0 ? max(datum.value, datum.upper + datum.room, datum.usual_end) : MAX_VALUE",
        kept_start="datum.far ? null : clamp(datum.start, datum.floor, datum.ceiling)",
        kept_end="datum.far ? null : clamp(datum.end, datum.floor, datum.ceiling)",
    )
    steps = steps.transform_joinaggregate(least="min(kept_start)", most="max(kept_end)")
    return steps.transform_calculate(
        # A row far outside may still lie where the others' intervals are.
        far="datum.value < datum.least || datum.value > datum.most ? datum.far : 0",
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
        base.mark_text(align="left", dx=12).encode(x=AT_RIGHT, text=alt.Text("text:N")),
    ]


def scale_of(values: pd.Series[Any], padding: int = 0) -> alt.Scale:
    """A scale that need not include 0; logarithmic if values are positive and span more than a factor of 20."""
    known = values.dropna()
    if len(known) and known.min() > 0 and known.max() > 20 * known.min():
        return alt.Scale(type="log", padding=padding)
    return alt.Scale(zero=False, padding=padding, nice=False)


def _plain(values: pd.Series[Any]) -> list[Any]:
    if pd.api.types.is_float_dtype(values):
        return [_number(value) for value in values.to_numpy(float, na_value=math.nan).tolist()]
    known = {value: _known(value) for value in values.dropna().unique()}
    return [known.get(value) for value in values]


def _known(value: Any) -> Any:
    if isinstance(value, str):
        return name_of(value)
    return bool(value) if pd.api.types.is_bool(value) else _number(float(value))


def _number(number: float) -> float | None:
    if not math.isfinite(number):
        return None
    return int(number) if number.is_integer() and abs(number) < 2**53 else float(f"{number:.7g}")


def paper() -> dict[str, Any]:
    """The style of charts outside a page: dark on white."""
    config = json.dumps({**CONFIG, "background": "#ffffff"})
    for role, colour in zip(COLOURS, ("#1b1f23", "#59636d", "#dde1e4"), strict=True):
        config = config.replace(role, colour)
    style: dict[str, Any] = json.loads(config)
    return style


def svg_text(spec: dict[str, Any], config: dict[str, Any]) -> str:
    """Draws a Vega-Lite specification as SVG."""
    import vl_convert

    return vl_convert.vegalite_to_svg(json.dumps(spec), config={**config, "aria": False})


def save(chart: Chart, path: str | Path) -> Path:
    """Writes a chart as an SVG file, dark on white, completely or not at all; returns its path.

    Raises:
        TypeError: `chart` is no chart, or `path` no path.
        ValueError: `path` does not end in .svg.
        StoreError: the file cannot be written; an existing one is intact.
    """
    if not isinstance(chart, alt.TopLevelMixin):
        raise TypeError(f"chart: must be an Altair chart, not a {type(chart).__name__}")
    file = Path(argument("path", path, str | Path))
    if file.suffix.lower() != ".svg":
        raise ValueError(f"path: must end in .svg, not {file.name!r}; `chart.save` of Altair writes other formats")
    replace_file(file, svg_text(chart.to_dict(validate=False), paper()).encode())
    return file
