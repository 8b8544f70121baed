"""Draws results: functions from data frames to Altair charts, for notebooks and the report page.

Every chart of methods has a parameter `shown`, the list of methods that it shows. Its scales adapt to them.
"""

from msda_bench.results.plots.classes import classes
from msda_bench.results.plots.epochs import curves, weight_map, weights
from msda_bench.results.plots.pairs import critical_difference, differences, pairs
from msda_bench.results.plots.scores import cost, forest, points
from msda_bench.results.plots.settings import regrets, sensitivity

__all__ = [
    "classes",
    "cost",
    "critical_difference",
    "curves",
    "differences",
    "forest",
    "pairs",
    "points",
    "regrets",
    "sensitivity",
    "weight_map",
    "weights",
]
