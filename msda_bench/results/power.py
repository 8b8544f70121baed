"""Forecasts from stored runs: the hours of a suite, and how small a gain it could find."""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import median

import numpy as np
import pandas as pd

from msda_bench.results.decision import tests_with_baseline
from msda_bench.results.estimates import detectable_shift, summarize
from msda_bench.results.frame import experiments
from msda_bench.results.scores import ScoreTable, mean_by_seed, paired, score_tables
from msda_bench.suite.expand import Expansion
from msda_bench.suite.plan import Experiment
from msda_bench.suite.run_spec import RunSpec

POWER = 0.8
"""The probability with which a gain is to be found."""
_HOUR = 3600


class Pilot:
    """A frame of runs from which standard deviations and seconds are taken, for experiments of the same data set."""

    def __init__(self, runs: pd.DataFrame) -> None:
        ok = {experiment.name: rows[rows["status"] == "ok"] for experiment, rows in experiments(runs)}
        self._rows = {name: rows for name, rows in ok.items() if len(rows)}
        self._grids = [grid for grid in score_tables(runs) if grid.experiment.name in self._rows]

    def _like(self, experiment: Experiment) -> ScoreTable | None:
        """The runs on the same data set; rather those of the experiment of this name."""
        alike = [grid for grid in self._grids if grid.experiment.dataset == experiment.dataset]
        return min(alike, key=lambda grid: grid.experiment.name != experiment.name, default=None)

    def smallest_gain(self, experiment: Experiment) -> float | None:
        """The smallest true gain over the baseline, in points, that the experiment's seeds find with probability 0.8.

        Of the signed-rank test after Holm's correction, with the standard deviation of the median method. None without
        two pairs of any method, without a baseline, of a metric without points, or if no gain would be found.
        """
        deviation = self._deviation(experiment)
        if deviation is None:
            return None
        level = experiment.alpha / tests_with_baseline(experiment)
        shift = detectable_shift(len(experiment.seeds), level, POWER)
        return None if shift is None else shift * deviation

    def _deviation(self, experiment: Experiment) -> float | None:
        """The standard deviation over seeds of a method's gain over the baseline, in points: the median of the methods.

        Of means over the targets that both have.
        """
        grid, baseline = self._like(experiment), experiment.baseline
        if grid is None or baseline not in grid.methods or not experiment.measure.percent:
            return None
        if grid.metric != experiment.measure.column:
            return None
        merits = [grid.merits[target].by_seed for target in experiment.targets if target in grid.averaged]
        means = {name: mean_by_seed([of[name] for of in merits if of[baseline]]) for name in grid.methods}
        deviations = []
        for method in experiment.methods:
            if method.reference or method.name == baseline or method.name not in means:
                continue
            gains = np.subtract(*paired(means[method.name], means[baseline])).tolist()
            if len(gains) > 1:
                summary = summarize(gains)
                deviations.append(summary.standard_error * math.sqrt(summary.n))
        return median(deviations) if deviations else None

    def timed(self, experiment: Experiment) -> dict[str, tuple[float, float]]:
        """The mean seconds and steps of the runs of each method on the same data set."""
        grid = self._like(experiment)
        if grid is None:
            return {}
        rows = self._rows[grid.experiment.name].astype({"method": str, "steps": float}).fillna({"steps": 0.0})
        means = rows.groupby("method")[["train_seconds", "steps"]].mean().dropna()
        return {name: (seconds, steps) for name, seconds, steps in means.itertuples(name=None)}


def _seconds(timed: Mapping[str, tuple[float, float]], method: str, cell: RunSpec) -> float:
    """The expected seconds of a method's cell: the mean of its runs, or of an unknown method the median of all.

    Seconds are in proportion to the steps of the cell, if its suite gives them.
    """
    usual = [float(median(values)) for values in zip(*timed.values(), strict=True)]
    seconds, steps = timed.get(method, usual)
    planned = cell.training.steps and cell.training.steps * (cell.training.epochs or 1)
    return seconds * planned / steps if planned and steps > 0 else seconds


def hours_of(expansion: Expansion, missing: Mapping[str, RunSpec], runs: pd.DataFrame) -> float | None:
    """The hours of the missing runs, from those of a frame; None if a table has no timed run."""
    pilot, seconds = Pilot(runs), 0.0
    for table in expansion.plan.experiments:
        timed = pilot.timed(table)
        if not timed:
            return None
        cells = {cell.key: cell for cell in expansion.plan.most if cell.experiment == table.name}
        seconds += sum(_seconds(timed, cells[key].method, missing[key]) for key in cells.keys() & missing.keys())
    return seconds / _HOUR
