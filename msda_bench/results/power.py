"""What `msda-bench plan` answers: from the runs of a folder the seeds that find a gain, and their hours."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any

import numpy as np
import pandas as pd

from msda_bench.errors import BenchError
from msda_bench.results.decision import tested, tests_with_baseline
from msda_bench.results.estimates import detectable_shift, summarize
from msda_bench.results.frame import experiments
from msda_bench.results.report import Column, Line, Report, Section, Table
from msda_bench.results.runs import results_of
from msda_bench.results.scores import Grid, grids, mean_by_seed, paired
from msda_bench.results.words import counted, listed, name_of
from msda_bench.suite.expand import Expansion
from msda_bench.suite.plan import Experiment
from msda_bench.suite.run_spec import RunSpec

SURE = 0.8
"""The confidence of the upper limit of a standard deviation."""
_MOST_SEEDS, _HOUR = 10_000, 3600
_WHOLE = ("to_train", "seeds", "needed", "at_most")
_COLUMNS = (
    *("experiment", "to_train", "hours", "standard_deviation", "seeds", "finds", "needed", "at_most", "hours_needed"),
)


class Pilot:
    """A frame of runs from which standard deviations and seconds are taken, for experiments of the same data set."""

    def __init__(self, runs: pd.DataFrame) -> None:
        ok = {experiment.name: rows[rows["status"] == "ok"] for experiment, rows in experiments(runs)}
        self._rows = {name: rows for name, rows in ok.items() if len(rows)}
        self._grids = [grid for grid in grids(runs) if grid.experiment.name in self._rows]
        self.devices = tuple(runs.loc[runs["status"] == "ok", "device_name"].dropna().unique())

    def _like(self, experiment: Experiment) -> Grid | None:
        """The runs on the same data set; rather those of the experiment of this name."""
        alike = [grid for grid in self._grids if grid.experiment.dataset == experiment.dataset]
        return min(alike, key=lambda grid: grid.experiment.name != experiment.name, default=None)

    def spread(self, experiment: Experiment) -> tuple[float, int] | None:
        """The standard deviation of a method's gain over the baseline, in points, and the pairs that it is of.

        Both are medians of the methods, of means over the targets that both have. None without two pairs of any method.
        """
        grid, baseline = self._like(experiment), experiment.baseline
        if grid is None or baseline not in grid.methods or not experiment.measure.percent:
            return None
        if grid.metric != experiment.measure.column:
            return None
        merits = [grid.merits[target].by_seed for target in experiment.targets if target in grid.averaged]
        means = {name: mean_by_seed([of[name] for of in merits if of[baseline]]) for name in grid.methods}
        names = [name for name in tested(experiment) if name in means]
        gains = [np.subtract(*paired(means[name], means[baseline])).tolist() for name in names]
        sums = [summarize(values) for values in gains if len(values) > 1]
        if not sums:
            return None
        return median(of.standard_error * math.sqrt(of.n) for of in sums), round(median(of.n for of in sums))

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


def _finds(seeds: int, deviation: float, level: float, power: float) -> float | None:
    """The smallest true gain that the signed-rank test at this level finds with this probability; None if it cannot."""
    shift = detectable_shift(seeds, level, power)
    return None if shift is None else shift * deviation


def _needed(gain: float, deviation: float, level: float, power: float) -> int | None:
    """The fewest seeds that find a true gain; None if that takes more than 10,000."""

    def enough(seeds: int) -> bool:
        size = _finds(seeds, deviation, level, power)
        return size is not None and size <= gain

    seeds = 1 + bisect_left(range(1, _MOST_SEEDS + 1), x=True, key=enough)
    return seeds if seeds <= _MOST_SEEDS else None


def plan_report(
    expansion: Expansion, missing: Mapping[str, RunSpec], runs: pd.DataFrame, detect: float, power: float
) -> Report:
    """The report on a suite that would train the `missing` cells; standard deviations and seconds are of `runs`.

    `detect` is the true gain over the baseline to find, in points, and `power` the probability of finding it.

    Raises:
        BenchError: there is no finished run on a data set of the suite.
    """
    pilot, plan = Pilot(runs), expansion.plan
    if not any(pilot.timed(table) for table in plan.experiments):
        what = f"{results_of(runs).folder}: has no finished run on a data set of suite {plan.suite}"
        raise BenchError(f"{what}; train some by `msda-bench run SUITE --only seed=0-3`, or name a folder by --pilot")
    rows = [_row(table, expansion, missing, pilot, detect, power) for table in plan.experiments]
    frame = pd.DataFrame(rows, columns=[*_COLUMNS]).astype(dict.fromkeys(_WHOLE, "Int64"))
    unit = "GPU-hours" if (runs.loc[runs["status"] == "ok", "device"] == "cuda").any() else "core-hours"
    columns = (
        Column("experiment", "text", ["experiment"]),
        Column("to train", "count", ["to_train"]),
        Column(unit, "number", ["hours"]),
        Column("s", "number", ["standard_deviation"]),
        Column("seeds", "count", ["seeds"]),
        Column("find", "number", ["finds"]),
        Column(f"seeds for {detect:g}", "count", ["needed"]),
        Column("at most", "count", ["at_most"]),
        Column(f"{unit} ", "number", ["hours_needed"]),
    )
    title = f"{plan.suite}: what it takes to find a true gain of {detect:g} points with probability {power:g}"
    hours = frame["hours"].sum()
    verdict = f"{counted(len(missing), 'run')} will train, {float(f'{hours:.2g}'):,g} {unit}."
    legend = (
        "s: the standard deviation over seeds of a method's gain over the baseline, the median of the methods; find: "
        f"the smallest true gain that the suite's seeds find with probability {power:g}, after Holm's correction; "
        f"seeds for: those that find {detect:g} points (at most {_MOST_SEEDS:,}), at most if s is at "
        f"the upper limit of its estimate ({SURE:.0%} confidence); then their {unit}, as on "
        f"{listed(map(name_of, pilot.devices))}."
    )
    table = Table("plan", title, frame, columns, verdict=(verdict,), notes=(legend,), about=())
    lines = [Line("note", f"standard deviations and seconds are of {results_of(runs).folder}")]
    lines += _gaps(plan.experiments, pilot)
    return Report((Section((table,), tuple(lines)),), frame, all(line.kind == "note" for line in lines))


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


def _row(
    table: Experiment, expansion: Expansion, missing: Mapping[str, RunSpec], pilot: Pilot, detect: float, power: float
) -> dict[str, Any]:
    from scipy.special import chdtri

    row: dict[str, Any] = {"experiment": table.name, "seeds": len(table.seeds)}
    spread, timed = pilot.spread(table), pilot.timed(table)
    if spread is not None:
        (size, n), level = spread, table.alpha / tests_with_baseline(table)
        largest = size * math.sqrt((n - 1) / chdtri(n - 1, SURE))  # (n - 1) s^2 is chi-squared
        row |= {"standard_deviation": size, "finds": _finds(len(table.seeds), size, level, power)}
        row |= {"needed": _needed(detect, size, level, power), "at_most": _needed(detect, largest, level, power)}
    if not timed:
        return row
    cells = {cell.key: cell for cell in expansion.plan.most if cell.experiment == table.name}
    seconds = {key: _seconds(timed, cell.method, expansion.cells[key]) for key, cell in cells.items()}
    to_train = [value for key, value in seconds.items() if key in missing]
    row |= {"to_train": len(to_train), "hours": sum(to_train) / _HOUR}
    if row.get("needed") is not None:
        of_seeds = sum(value for key, value in seconds.items() if cells[key].seed in table.seeds)
        tuning = sum(seconds.values()) - of_seeds
        row["hours_needed"] = (tuning + row["needed"] * of_seeds / len(table.seeds)) / _HOUR
    return row


def _gaps(tables: Sequence[Experiment], pilot: Pilot) -> Iterator[Line]:
    for table in tables:
        if not pilot.timed(table):
            yield Line("problem", f"{table.name}: no timed run on {name_of(table.dataset)}, so no hours are known")
        elif table.baseline is None or not table.measure.percent:
            yield Line("note", f"{table.name}: no baseline, or a metric without points, so no gain to find")
        elif pilot.spread(table) is None:
            yield Line("problem", f"{table.name}: no method has two seeds in common with {name_of(table.baseline)}")
