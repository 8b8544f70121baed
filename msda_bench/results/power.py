"""Forecasts from stored runs: the hours of a suite, and how small a gain it could find."""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import median

import pandas as pd

from msda_bench.results.decision import tests_with_baseline
from msda_bench.results.estimates import detectable_shift, summarize
from msda_bench.results.frame import experiments
from msda_bench.results.runs import ok_runs
from msda_bench.results.scores import ScoreTable, known, mean_by_seed, score_tables
from msda_bench.suite.expand import Expansion
from msda_bench.suite.plan import Experiment
from msda_bench.suite.run_spec import RunSpec

_HOUR = 3600


class Pilot:
    """A frame of runs from which standard deviations and seconds are taken, for experiments of the same data set."""

    def __init__(self, runs: pd.DataFrame) -> None:
        self._ok: dict[str, pd.DataFrame] = {}
        for experiment, rows in experiments(runs):
            ok = ok_runs(rows)
            if len(ok):
                self._ok[experiment.name] = ok
        self._tables = [table for table in score_tables(runs) if table.experiment.name in self._ok]

    def _like(self, experiment: Experiment) -> ScoreTable | None:
        """The runs on the same data set, if possible those of the experiment of the same name."""
        alike = [table for table in self._tables if table.experiment.dataset == experiment.dataset]
        for table in alike:
            if table.experiment.name == experiment.name:
                return table
        return alike[0] if alike else None

    def smallest_gain(self, experiment: Experiment) -> float | None:
        """The smallest true gain over the baseline, in points, that the experiment's seeds find with probability 0.8.

        It is that of the signed-rank test after Holm's correction, with the standard deviation of the median method.
        None without two pairs of any method, without a baseline, for a metric without points, or if no gain would be
        found.
        """
        deviation = self._deviation(experiment)
        if deviation is None:
            return None
        level = experiment.alpha / tests_with_baseline(experiment)
        shift = detectable_shift(len(experiment.seeds), level)
        return None if shift is None else shift * deviation

    def _deviation(self, experiment: Experiment) -> float | None:
        """The median over methods of the standard deviation over seeds of the gain over the baseline, in points.

        A gain is a difference of means over the targets that both have.
        """
        table = self._like(experiment)
        baseline = experiment.baseline
        if table is None or baseline not in table.methods or not experiment.measure.percent:
            return None
        if table.metric != experiment.measure.column:
            return None
        targets = [target for target in experiment.targets if target in table.averaged]
        targets = [target for target in targets if table.known(baseline, target)]
        means = {name: mean_by_seed(table.at(name, targets)) for name in table.methods}
        deviations = []
        for method in experiment.methods:
            if method.reference or method.name == baseline or method.name not in means:
                continue
            gains = known(means[method.name] - means[baseline])
            if len(gains) > 1:
                summary = summarize(gains)
                deviations.append(summary.standard_error * math.sqrt(summary.n))
        return median(deviations) if deviations else None

    def timed(self, experiment: Experiment) -> dict[str, tuple[float, float]]:
        """The mean seconds and steps of the runs of each method on the same data set."""
        table = self._like(experiment)
        if table is None:
            return {}
        rows = self._ok[table.experiment.name].astype({"method": str, "steps": float})
        rows = rows.fillna({"steps": 0.0})
        means = rows.groupby("method")[["train_seconds", "steps"]].mean().dropna()
        return {name: (seconds, steps) for name, seconds, steps in means.itertuples(name=None)}


def _seconds(timed: Mapping[str, tuple[float, float]], method: str, cell: RunSpec) -> float:
    """The expected seconds of a method's cell: the mean of its runs, or the median of all methods if it has none.

    Seconds are in proportion to the steps of the cell, if its suite gives them.
    """
    if method in timed:
        seconds, steps = timed[method]
    else:
        seconds = median(seconds for seconds, _ in timed.values())
        steps = median(steps for _, steps in timed.values())
    training = cell.training
    if not training.steps or steps <= 0:
        return seconds
    planned = training.steps * (training.epochs or 1)
    return seconds * planned / steps


def hours_of(expansion: Expansion, missing: Mapping[str, RunSpec], runs: pd.DataFrame) -> float | None:
    """The hours that the missing runs will take, from the runs of a frame; None if a table has no timed run."""
    pilot = Pilot(runs)
    seconds = 0.0
    for table in expansion.plan.experiments:
        timed = pilot.timed(table)
        if not timed:
            return None
        methods = {cell.key: cell.method for cell in expansion.plan.most if cell.experiment == table.name}
        for key, method in methods.items():
            if key in missing:
                seconds += _seconds(timed, method, missing[key])
    return seconds / _HOUR
