"""Draws results: functions from data frames to Altair charts, for notebooks and the report page.

Every chart of methods has a parameter `shown`, the list of methods that it shows. Its scales adapt to them.
"""

from msda_bench_report.plots.epochs import curves, weight_map, weights
from msda_bench_report.plots.pairs import critical_difference, differences, pairs
from msda_bench_report.plots.parts import save
from msda_bench_report.plots.scores import classes, cost, domains, forest, points, regrets, sensitivity

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
