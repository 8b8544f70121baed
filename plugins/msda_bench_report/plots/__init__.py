"""Draws results: functions from data frames to Altair charts, for notebooks; the report page draws the same.

Every chart of methods has a parameter `shown`, the list of methods that it shows. Its scales adapt to them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, ParamSpec

from msda_bench_report.plots import epochs, scores
from msda_bench_report.plots import pairs as of_pairs
from msda_bench_report.plots.parts import save
from msda_bench_report.plots.vega import Spec, as_chart

if TYPE_CHECKING:
    from altair import TopLevelMixin

_Parameters = ParamSpec("_Parameters")


def _chart(draw: Callable[_Parameters, Spec]) -> Callable[_Parameters, TopLevelMixin]:
    """The function that makes an Altair chart of what `draw` specifies."""

    @wraps(draw)
    def drawn(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> TopLevelMixin:
        return as_chart(draw(*args, **kwargs))

    return drawn


classes = _chart(scores.classes)
cost = _chart(scores.cost)
critical_difference = _chart(of_pairs.critical_difference)
curves = _chart(epochs.curves)
differences = _chart(of_pairs.differences)
domains = _chart(scores.domains)
forest = _chart(scores.forest)
pairs = _chart(of_pairs.pairs)
points = _chart(scores.points)
regrets = _chart(scores.regrets)
sensitivity = _chart(scores.sensitivity)
weight_map = _chart(epochs.weight_map)
weights = _chart(epochs.weights)

__all__ = [
    "classes",
    "cost",
    "critical_difference",
    "curves",
    "differences",
    "domains",
    "forest",
    "pairs",
    "points",
    "regrets",
    "save",
    "sensitivity",
    "weight_map",
    "weights",
]
