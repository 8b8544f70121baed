"""The common parts of charts: data as safe JSON, colours, panels, shown methods, axes, outliers; and still pictures."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pandas as pd

from msda_bench.component.task import MetricInfo
from msda_bench.results.argument_checks import FrameSchema, argument
from msda_bench.results.compare import COMPARISONS
from msda_bench.results.criteria import CRITERIA, SENSITIVITY
from msda_bench.results.files import replace_file
from msda_bench.results.frame import CURVES, RUNS
from msda_bench.results.leaderboard import LEADERBOARD
from msda_bench.results.predictions import PER_CLASS
from msda_bench.results.runs import known_results
from msda_bench.results.words import name_of
from msda_bench.suite.plan import DEFAULT_METRICS
from msda_bench_report.plots.vega import Layer, Spec, channel, in_order, joined, layer_chart

if TYPE_CHECKING:
    from altair import TopLevelMixin

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
OF_REFERENCE: Spec = {"condition": [{"test": "datum.reference", "value": GREY}], "value": BLUE}
"""Grey for references, blue for the other methods."""
AT_RIGHT: Spec = {"value": "width"}
"""Beside the plot."""
_DASHES = ([1, 0], [6, 2], [2, 2], [8, 2, 2, 2], [10, 4])
_DIVERGING = ["#e59a52", "#f1f1ee", "#62abdb"]
"""The colours of less, equal and more, light enough for dark numbers."""
NUMBERS = "#1b1f23"
"""The colour of numbers and lines on these."""
_MOST_NUMBERS = 14
"""The number of columns of a matrix beyond which its numbers cannot be read."""
SHOWN = "indexof(shown, datum.method) >= 0"
"""A Vega expression: whether a row's method is in the parameter `shown`."""


def layered(frame: pd.DataFrame, *layers: Layer, steps: Layer | None = None, **size: Any) -> Spec:
    """Layers marks on rows of plain JSON values: seven significant digits, None for missing values, printable texts.

    `steps` holds the transforms that all layers share.
    """
    names = [str(name) for name in frame]
    columns = [_plain(frame[name]) for name in frame]
    rows = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    return layer_chart(rows, layers, steps, size)


def in_rows(frame: pd.DataFrame, *layers: Layer, steps: Layer | None = None, row: int = ROW) -> Spec:
    """Layers marks on a chart of two panels' width that has a row for each name."""
    return layered(frame, *layers, steps=steps, width=2 * WIDTH, height=step(row))


def step(pixels: float) -> Spec:
    """The size of a plot with this many pixels for each name on its axis."""
    return {"step": pixels}


def only_shown() -> Layer:
    """Only the filter for the shown methods, to which other transforms can be added."""
    return Layer().filter(SHOWN)


def names(frame: pd.DataFrame, column: str) -> list[str]:
    """The names in a column as charts show them, in the order of their first rows."""
    return list(dict.fromkeys(map(name_of, frame[column].dropna().unique())))


def measure_of(frame: pd.DataFrame) -> MetricInfo:
    """The metric of an experiment's scores: that of its suite, or the default of its task."""
    task = frame["task"].astype(object).iloc[0]
    if task not in DEFAULT_METRICS:
        raise ValueError(f"the frame has the task {task!r}, which is neither {' nor '.join(DEFAULT_METRICS)}")
    results = known_results(frame)
    if results is not None:
        drawn = set(frame["experiment"].astype(object))
        for table in results.plan.experiments:
            if table.name in drawn and table.metric is not None:
                return table.metric
    return DEFAULT_METRICS[task]


def panels(parameter: str, frame: pd.DataFrame, by: Sequence[str], draw: Callable[[pd.DataFrame], Spec]) -> Spec:
    """Draws one chart for each group of rows, side by side with titles; a single chart for one group.

    If the rows have methods, the chart has the parameter `shown` with their names, by which `SHOWN` filters.

    Raises:
        ValueError: the frame is empty.
    """
    if frame.empty:
        raise ValueError(f"{parameter}: there is nothing to draw: no rows with what this chart shows")
    varying = [name for name in by if frame[name].nunique() > 1]
    if varying:
        made = []
        for place, rows in frame.groupby(varying, observed=True, sort=False):
            title = ", ".join(map(name_of, place))
            made.append(in_order(draw(rows) | {"title": title}))
        scales = {"color": "independent", "strokeDash": "independent"}
        chart = joined("concat", made, columns=3, resolve={"scale": scales})
    else:
        chart = draw(frame)
    shown: dict[str, None] = {}
    for column in ("method", "first", "second"):
        if column in frame:
            shown.update(dict.fromkeys(names(frame, column)))
    if not shown:
        return chart
    return in_order(chart | {"params": [{"name": "shown", "value": list(shown)}]})


def tips(words: str, numbers: str, form: str = ".4~g") -> list[Spec]:
    """Tooltips: columns of words, and columns of numbers."""
    of_words = [channel(f"{name}:N") for name in words.split()]
    of_numbers = [channel(f"{name}:Q", format=form) for name in numbers.split()]
    return of_words + of_numbers


def legend(columns: int = 1, **options: Any) -> Spec:
    """A legend under a chart."""
    limit = {1: 320, 2: 160}.get(columns, 110)
    return {"title": None, "orient": "bottom", "columns": columns, "labelLimit": limit} | options


def by_method(methods: Sequence[str]) -> dict[str, Spec]:
    """A colour and dashes for each method, independent of which methods are shown; the legend lists the shown ones."""
    return look("method", methods, legend(3, values={"expr": "shown"}))


def look(column: str, domain: Sequence[str], below: Spec, known: Sequence[str] = ()) -> dict[str, Spec]:
    """A colour for each name, equal in all charts of the known names, and dashes for readers who see no colours."""
    places = [(known or domain).index(name) for name in domain]
    ranges: dict[str, list[Any]] = {
        "color": [HUES[place % len(HUES)] for place in places],
        "strokeDash": [_DASHES[place % len(_DASHES)] for place in places],
    }
    seen = {}
    for name, values in ranges.items():
        scale = {"domain": list(domain), "range": values}
        seen[name] = channel(f"{column}:N", legend=below, scale=scale)
    return seen


def kinds(column: str, known: Mapping[str, str], used: pd.Series[Any], title: str | None = None) -> Spec:
    """The colours of those known kinds that occur."""
    there = [kind for kind in known if (used == kind).any()]
    scale = {"domain": there, "range": [known[kind] for kind in there]}
    return channel(f"{column}:N", scale=scale, legend=legend(title=title))


def rows_of(column: str = "method", order: str = "order", **options: Any) -> Spec:
    """A row for each name, ordered by a column of numbers."""
    return _names(column, order, options)


def columns_of(column: str, **options: Any) -> Spec:
    """A column for each name, ordered by the numbers in `column`."""
    return _names(column, "column", options)


def _names(column: str, order: str, options: Spec) -> Spec:
    plain = {"title": None, "labelLimit": 120, "ticks": False, "domain": False, "labelPadding": 6}
    return channel(f"{column}:N", sort={"field": order, "op": "min"}, axis=plain | options)


def matrix(
    rows: pd.DataFrame,
    column: str,
    number: Spec,
    tooltip: list[Spec],
    steps: Layer,
    span: float,
    label: str | None = None,
    above: Sequence[Layer] = (),
) -> Spec:
    """Draws one row per method and one column per name, with numbers if there are few enough columns to read them.

    Colours show `away`, which `steps` computes, on a scale around 0 that reaches at least `span` to both sides. `label`
    is a Vega expression for the names of columns, and `above` is drawn over the cells. Rows and columns are ordered by
    the numbers in `order` and `column`, if the frame has them, and by their first rows otherwise.
    """
    columns = names(rows, column)
    for place, of in (("order", "method"), ("column", column)):
        if place not in rows:
            known = names(rows, of)
            rows = rows.assign(**{place: [known.index(name_of(name)) for name in rows[of]]})
    labels: dict[str, Any] = {"labelAngle": -40, "labelLimit": 90}
    if max(map(len, columns)) < 4:  # noqa: PLR2004
        labels = {"labelAngle": 0, "labelOverlap": True}
    if label is not None:
        labels["labelExpr"] = label
    scale = {"domain": [-1, 0, 1], "range": _DIVERGING, "interpolate": "rgb"}
    colour = channel("tone:Q", scale=scale, legend=None)
    cell = Layer().encode(x=columns_of(column, **labels), y=rows_of())
    marks = [cell.draw("rect").encode(color=colour, tooltip=tooltip)]
    if len(columns) <= _MOST_NUMBERS:
        marks.append(cell.draw("text", fontSize=10, color=NUMBERS).encode(text=number))
    steps = steps.calculate(size="abs(datum.away)").join_aggregate(most="max(size)")
    steps = steps.calculate(tone=f"datum.away / max({span}, datum.most)")
    width = max(WIDTH // 2, min(2 * WIDTH, 40 * len(columns)))
    return layered(rows, *marks, *above, steps=steps, width=width, height=step(ROW + 2))


def clamped(field: str, interval: tuple[str, str] | None = None, reach: int = 6) -> Layer:
    """Transforms that keep the shown methods and compute the positions at which rows are drawn.

    `at` is the position of the column `field`; `at_low` and `at_high` are those of the ends of an interval. `far` is -1
    or 1 for rows far outside, which are drawn at the edge, and 0 for the others, which are drawn in place.

    A row is far outside if it lies more than `reach` interquartile ranges of all shown rows beyond their quartiles. If
    its method has four rows or more, the row must also be far from these, or twice as far from all rows.
    """
    low, high = interval or (field, field)
    quartiles: dict[str, Any] = {"own_lower": f"q1({field})", "own_upper": f"q3({field})", "own_n": "count()"}
    steps = only_shown().join_aggregate(lower=f"q1({field})", upper=f"q3({field})", n="count()")
    steps = steps.join_aggregate(["method"], **quartiles).calculate(
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
    steps = steps.join_aggregate(usual_start="q1(start)", usual_end="q3(end)").calculate(
        floor="datum.room > 0 ? min(datum.value, datum.lower - datum.room, datum.usual_start) : -MAX_VALUE",
        ceiling="datum.room > 0 ? max(datum.value, datum.upper + datum.room, datum.usual_end) : MAX_VALUE",
        kept_start="datum.far ? null : clamp(datum.start, datum.floor, datum.ceiling)",
        kept_end="datum.far ? null : clamp(datum.end, datum.floor, datum.ceiling)",
    )
    steps = steps.join_aggregate(least="min(kept_start)", most="max(kept_end)")
    return steps.calculate(
        # A row far outside may still lie where the others' intervals are.
        far="datum.value < datum.least || datum.value > datum.most ? datum.far : 0",
        edge="(datum.most - datum.least) * 0.06",
        **{
            at: f"isValid(datum.{name}) ? clamp(datum.{name}, datum.least - datum.edge, datum.most + datum.edge) : null"
            for at, name in {"at": field, "at_low": low, "at_high": high}.items()
        },
    )


def beside(base: Layer, text: Spec, dx: int = 12) -> Layer:
    """Text at the right of each row."""
    return base.draw("text", align="left", dx=dx).encode(x=AT_RIGHT, text=text)


def pointed() -> Spec:
    """Circles, or at the edge arrows that point towards outliers."""
    below = {"test": "datum.far < 0", "value": "triangle-left"}
    above = {"test": "datum.far > 0", "value": "triangle-right"}
    return {"condition": [below, above], "value": "circle"}


def interval(title: str | list[str], color: Spec, tooltip: list[Spec]) -> list[Layer]:
    """Bars from `low` to `high` with a mark, arrows on bars that continue beyond the edge, and `text` at the right."""
    scale = {"zero": False, "nice": False, "padding": 10}
    across = channel("at:Q", title=title, axis={"tickCount": 6}, scale=scale)
    low = channel("at_low:Q", title=title)
    high = {"field": "at_high"}
    base = Layer().encode(y=rows_of())
    bars = base.filter("datum.far == 0").draw("rule", strokeWidth=3)
    dots = base.dots(90, opacity=1)
    return [
        bars.encode(x=low, x2=high, color=color, tooltip=tooltip),
        _arrow(base, "low", "<", "left").encode(color=color),
        _arrow(base, "high", ">", "right").encode(color=color),
        dots.encode(x=across, color=color, shape=pointed(), tooltip=tooltip),
        beside(base, channel("text:N")),
    ]


def _arrow(base: Layer, end: str, sign: str, side: str) -> Layer:
    """An arrow where this end of an interval lies beyond the edge."""
    beyond = base.filter(f"datum.far == 0 && datum.{end} {sign} datum.at_{end}")
    arrow = beyond.dots(50, opacity=1, shape=f"triangle-{side}")
    return arrow.encode(x=channel(f"at_{end}:Q"))


def scale_of(values: pd.Series[Any], padding: int = 0) -> Spec:
    """A scale that need not include 0; logarithmic if values are positive and span more than a factor of 20."""
    known = values.dropna()
    if len(known) and known.min() > 0 and known.max() > 20 * known.min():
        return {"type": "log", "padding": padding}
    return {"zero": False, "padding": padding, "nice": False}


def _plain(values: pd.Series[Any]) -> list[Any]:
    if pd.api.types.is_float_dtype(values):
        return [_number(value) for value in values.to_numpy(float, na_value=math.nan).tolist()]
    known = {value: _known(value) for value in values.dropna().unique()}
    return [known.get(value) for value in values.tolist()]


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


def save(chart: TopLevelMixin, path: str | Path) -> Path:
    """Writes a chart as an SVG file, dark on white, completely or not at all; returns its path.

    Raises:
        TypeError: `chart` is no chart, or `path` no path.
        ValueError: `path` does not end in .svg.
        StoreError: the file cannot be written; an existing one is intact.
    """
    from altair import TopLevelMixin

    if not isinstance(chart, TopLevelMixin):
        raise TypeError(f"chart: must be an Altair chart, not a {type(chart).__name__}")
    file = Path(argument("path", path, str | Path))
    if file.suffix.lower() != ".svg":
        raise ValueError(f"path: must end in .svg, not {file.name!r}; `chart.save` of Altair writes other formats")
    replace_file(file, svg_text(chart.to_dict(validate=False), paper()).encode())
    return file
