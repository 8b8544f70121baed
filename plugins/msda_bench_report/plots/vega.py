"""Vega-Lite specifications as plain dicts: channels, layers with their transforms, and charts with their data.

They are written here, and not by Altair, which copies and converts every part of a chart several times. Keys are in the
order in which Altair writes them. `as_chart` makes an Altair chart of a finished specification.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from altair import TopLevelMixin

Spec: TypeAlias = dict[str, Any]
"""A part of a specification, or a whole one."""
_TYPES = {"Q": "quantitative", "N": "nominal"}


def channel(shorthand: str, **options: Any) -> Spec:
    """A channel that shows a column: `at:Q` as numbers, `text:N` as words, `mean(score):Q` as the mean of numbers."""
    name, _, kind = shorthand.rpartition(":")
    what: Spec = {"field": name, "type": _TYPES[kind]}
    if name.endswith(")"):
        operation, _, of = name[:-1].partition("(")
        what |= {"aggregate": operation, "field": of}
    ordered: Spec = _ordered(what | options)
    return ordered


def _ordered(value: Any) -> Any:
    """The value with the keys of all its dicts in alphabetical order."""
    if isinstance(value, dict):
        return {name: _ordered(value[name]) for name in sorted(value)}
    return value


@dataclass(frozen=True)
class Layer:
    """A mark with the columns that it shows, and the transforms of its rows; each method returns another layer.

    Attributes:
        mark: the kind of mark and its style.
        encoding: a specification for each channel.
        transform: the transforms, in their order.
        rows: rows of its own; None for those of the chart.
    """

    mark: Spec = field(default_factory=dict)
    encoding: Mapping[str, Spec | Sequence[Spec]] = field(default_factory=dict)
    transform: tuple[Spec, ...] = ()
    rows: Sequence[Spec] | None = None

    def draw(self, mark: str, **style: Any) -> Layer:
        """Draws this kind of mark."""
        return replace(self, mark={"type": mark} | _ordered(style))

    def dots(self, size: int, **style: Any) -> Layer:
        """Draws filled points of this area."""
        return self.draw("point", filled=True, size=size, **style)

    def dashed(self) -> Layer:
        """Draws dashed lines."""
        return self.draw("rule", strokeDash=[4, 3], opacity=0.7)

    def encode(self, **channels: Spec | Sequence[Spec]) -> Layer:
        """Shows columns, or fixed values, by these channels, too."""
        return replace(self, encoding={**self.encoding, **channels})

    def filter(self, test: str) -> Layer:
        """Keeps the rows that pass a test."""
        return self._then({"filter": test})

    def calculate(self, **columns: str) -> Layer:
        """Adds a column for each of these expressions."""
        return self._then(*({"calculate": expression, "as": name} for name, expression in columns.items()))

    def aggregate(self, groupby: Sequence[str] = (), **columns: str) -> Layer:
        """Replaces the rows of each group with one, which has columns such as `low="min(score)"`."""
        return self._then({"aggregate": [*_operations(columns)]} | _of_groups(groupby))

    def join_aggregate(self, groupby: Sequence[str] = (), **columns: str) -> Layer:
        """Adds such columns to all rows of each group."""
        return self._then({"joinaggregate": [*_operations(columns)]} | _of_groups(groupby))

    def _then(self, *steps: Spec) -> Layer:
        return replace(self, transform=(*self.transform, *steps))

    @property
    def spec(self) -> Spec:
        """Its specification, without its own rows."""
        spec: Spec = {"mark": self.mark, "encoding": dict(sorted(self.encoding.items()))}
        if self.transform:
            spec["transform"] = [*self.transform]
        return spec


def _operations(columns: Mapping[str, str]) -> Iterator[Spec]:
    for name, text in columns.items():
        operation, _, of = text[:-1].partition("(")
        column = {"field": of} if of else {}
        yield {"op": operation, **column, "as": name}


def _of_groups(names: Sequence[str]) -> Spec:
    return {"groupby": [*names]} if names else {}


def layer_chart(rows: Sequence[Spec], layers: Sequence[Layer], steps: Layer | None, size: Mapping[str, Any]) -> Spec:
    """A chart of layers on rows; `steps` has the transforms that all layers share."""
    datasets: dict[str, Sequence[Spec]] = {}
    data = _named(rows, datasets)
    made = []
    for layer in layers:
        own = {} if layer.rows is None else {"data": _named(layer.rows, datasets)}
        made.append(own | layer.spec)
    chart: Spec = {"layer": made, "data": data, "datasets": datasets} | dict(size)
    if steps is not None and steps.transform:
        chart["transform"] = [*steps.transform]
    return in_order(chart)


def _named(rows: Sequence[Spec], datasets: dict[str, Sequence[Spec]]) -> Spec:
    """Keeps rows in `datasets`, by their hash, and returns their name."""
    text = json.dumps(rows, sort_keys=True)
    name = f"data-{hashlib.sha256(text.encode()).hexdigest()[:32]}"
    datasets[name] = rows
    return {"name": name}


def in_order(chart: Spec) -> Spec:
    """A chart with its layers or panels first and its datasets last; what lies between is in alphabetical order."""
    if "facet" in chart:
        first = ["data", "facet", "spec"]
    else:
        first = [name for name in ("layer", "concat", "vconcat") if name in chart]
    between = sorted(chart.keys() - {*first, "datasets"})
    return {name: chart[name] for name in (*first, *between, "datasets")}


def joined(kind: str, charts: Sequence[Spec], **options: Any) -> Spec:
    """Several charts as one: `concat` or `vconcat`; the datasets of all are those of the whole."""
    datasets: dict[str, Any] = {}
    made = []
    for chart in charts:
        datasets |= chart["datasets"]
        made.append({name: value for name, value in chart.items() if name != "datasets"})
    return in_order({kind: made, "datasets": datasets} | options)


def facetted(chart: Spec, row: Spec, steps: Layer, spacing: int) -> Spec:
    """A chart for each value of a column, one below the other; `steps` has the transforms of all rows."""
    within = {name: value for name, value in chart.items() if name not in {"data", "datasets"}}
    about: Spec = {"data": chart["data"], "facet": {"row": row}, "spacing": spacing, "spec": within}
    return in_order(about | {"transform": [*steps.transform], "datasets": chart["datasets"]})


def as_chart(spec: Spec) -> TopLevelMixin:
    """The Altair chart of a specification; its layers and panels are charts, too, as Altair's methods expect."""
    return _built(spec, spec["datasets"])


def _built(spec: Spec, datasets: Mapping[str, Any]) -> TopLevelMixin:
    import altair as alt

    kinds: dict[str, Any] = {
        "layer": alt.LayerChart,
        "concat": alt.ConcatChart,
        "vconcat": alt.VConcatChart,
        "spec": alt.FacetChart,
    }
    inner = next((name for name in kinds if name in spec), None)
    own = {name: value for name, value in spec.items() if name not in {"data", "datasets"}}
    if inner is None:
        # Not by `alt.Chart.from_dict`, which tries to validate against each kind of chart.
        chart = super(alt.Chart, alt.Chart).from_dict(own, validate=False)
    else:
        chart = kinds[inner].from_dict(own, validate=False)
        if inner == "spec":
            chart[inner] = _built(spec[inner], datasets)
        else:
            chart[inner] = [_built(part, datasets) for part in spec[inner]]
    if "data" in spec:
        chart.data = alt.InlineData(values=datasets[spec["data"]["name"]])
    built: TopLevelMixin = chart
    return built
