"""Charts of results: functions from data frames to Altair charts, which a notebook shows and the report page uses.

Every chart of methods has a parameter `shown`, the list of the methods that it shows; scales follow it.
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
