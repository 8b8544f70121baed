"""Puts the runs of an experiment on the full grid of methods, targets and seeds, with exact scores.

Scores are whole numbers, because rounding would create and break ties.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias

import pandas as pd

from msda_bench.results.frame import PROBLEMS, experiments
from msda_bench.results.select import select
from msda_bench.results.signed_rank import scaled_integers
from msda_bench.suite.plan import Experiment

Column: TypeAlias = str | None
"""A target, or None for the mean over targets."""

_SEVERITY = {status: place for place, status in enumerate((*PROBLEMS, "ok"))}


@dataclass(frozen=True)
class Merits:
    """The scores of methods in one column, as whole numbers; higher is better.

    Attributes:
        by_seed: merits by method, then by seed, in multiples of `unit`. A score of which less is better is negated.
        unit: the size of one step, in percent, squared error or the unit of another metric.
    """

    by_seed: Mapping[str, Mapping[int, int]]
    unit: Fraction

    def paired(self, first: str, second: str) -> tuple[list[int], list[int]]:
        """The merits of two methods at their common seeds, in order."""
        firsts, seconds = self.by_seed[first], self.by_seed[second]
        if firsts.keys() == seconds.keys():  # both in the order of the seeds
            return list(firsts.values()), list(seconds.values())
        both = [seed for seed in firsts if seed in seconds]
        return [firsts[seed] for seed in both], [seconds[seed] for seed in both]

    def means(self, names: Iterable[str]) -> dict[str, Fraction]:
        """The mean merit of each of these methods; methods without merits are skipped."""
        return {name: Fraction(sum(own.values()), len(own)) for name in names if (own := self.by_seed[name])}

    def differences(self, first: str, second: str) -> list[int]:
        """The first method's merit minus the second's, at each common seed."""
        return [one - other for one, other in zip(*self.paired(first, second), strict=True)]


@dataclass(frozen=True)
class Grid:
    """An experiment's runs on a full grid; runs without a row are missing.

    `methods`, `targets` and `seeds` are those that have rows, in the plan's order. `references` are shown, but not
    ranked or tested. `statuses` are by method and target, then by seed.
    """

    experiment: Experiment
    methods: tuple[str, ...]
    references: frozenset[str]
    targets: tuple[str, ...]
    seeds: tuple[int, ...]
    statuses: Mapping[tuple[str, str], Mapping[int, str]]
    merits: Mapping[Column, Merits] = field(repr=False)

    @property
    def ranked(self) -> tuple[str, ...]:
        """The methods without the references."""
        return tuple(name for name in self.methods if name not in self.references)

    @property
    def columns(self) -> tuple[Column, ...]:
        """The targets, then None for their mean."""
        return (*self.targets, None)

    @property
    def sign(self) -> int:
        """1 if a higher score is better, -1 if a lower score is."""
        return self.experiment.measure.sign

    @property
    def metric(self) -> str:
        """The metric's name in CSV files, such as accuracy_percent or mse."""
        return self.experiment.measure.column

    def scores(self, method: str, target: str, seeds: Sequence[int]) -> list[float]:
        """The scores of a method's ok runs with these seeds, in the metric's unit."""
        found = self.merits[target]
        own, steps, scale = found.by_seed[method], self.sign * found.unit.numerator, found.unit.denominator
        return [steps * own[seed] / scale for seed in seeds]

    def counts(self, method: str, column: Column) -> Counter[str]:
        """Counts seeds by status; for the mean over targets, by the worst status of a seed's runs."""
        targets = self.targets if column is None else (column,)
        rows = [self.statuses.get((method, target), {}) for target in targets]
        if len(rows) == 1:
            return Counter(rows[0].get(seed, "missing") for seed in self.seeds)
        return Counter(
            min((row.get(seed, "missing") for row in rows), key=_SEVERITY.__getitem__) for seed in self.seeds
        )


def grids(runs: pd.DataFrame) -> Iterator[Grid]:
    """The experiments of a frame of runs, in the plan's order, with the selected candidates."""
    return (_grid(experiment, rows) for experiment, rows in experiments(select(runs)))


def _grid(experiment: Experiment, rows: pd.DataFrame) -> Grid:
    methods = _in_order(rows["method"], [method.name for method in experiment.methods])
    targets = _in_order(rows["target"], experiment.targets)
    seeds = _in_order(rows["seed"], experiment.seeds)
    statuses: dict[tuple[str, str], dict[int, str]] = {}
    for method, target, seed, status in _values(rows, "method", "target", "seed", "status"):
        statuses.setdefault((method, target), {})[seed] = status
    ok = rows[(rows["status"] == "ok").to_numpy() & rows["score"].notna().to_numpy()]
    of = ok["target"].astype(object)
    merits: dict[Column, Merits] = {target: _merits(ok[of == target], methods, seeds, experiment) for target in targets}
    merits[None] = _mean_merits([merits[target] for target in targets], methods)
    references = frozenset(rows.loc[rows["reference"].astype(bool), "method"].astype(object))
    return Grid(experiment, methods, references, targets, seeds, statuses, merits)


def _merits(ok: pd.DataFrame, methods: Sequence[str], seeds: Sequence[int], experiment: Experiment) -> Merits:
    """The merits of ok runs, all of one target."""
    if experiment.metric is not None:
        found, scale = scaled_integers(map(Fraction, ok["score"].tolist()))
        numbers, unit = [experiment.measure.sign * number for number in found], Fraction(1, scale)
    elif experiment.task == "classification":
        tests, right = ok["n_test"].astype(object).tolist(), ok["n_correct"].astype(object).tolist()
        scale = math.lcm(*set(tests))
        numbers, unit = [n * (scale // of) for n, of in zip(right, tests, strict=True)], Fraction(100, scale)
    else:
        sums = zip(ok["sum_squared_error"].tolist(), ok["n_test"].astype(object), strict=True)
        found, scale = scaled_integers(Fraction(total) / of for total, of in sums)
        numbers, unit = [-number for number in found], Fraction(1, scale)
    by_seed: dict[str, dict[int, int]] = {name: {} for name in methods}
    for (method, seed), number in zip(_values(ok, "method", "seed"), numbers, strict=True):
        by_seed[method][seed] = number
    return Merits({name: {seed: own[seed] for seed in seeds if seed in own} for name, own in by_seed.items()}, unit)


def _mean_merits(targets: Sequence[Merits], methods: Sequence[str]) -> Merits:
    """The means over targets, for the seeds that are ok at every target."""
    scale = math.lcm(*(one.unit.denominator for one in targets))
    steps = [one.unit.numerator * (scale // one.unit.denominator) for one in targets]
    by_seed = {}
    for name in methods:
        rows = [one.by_seed[name] for one in targets]
        seeds = [seed for seed in rows[0] if all(seed in row for row in rows)]
        by_seed[name] = {seed: sum(step * row[seed] for step, row in zip(steps, rows, strict=True)) for seed in seeds}
    return Merits(by_seed, Fraction(1, scale * len(targets)))


def _in_order(values: pd.Series[Any], planned: Sequence[Any]) -> tuple[Any, ...]:
    """The values that occur, in the plan's order; unplanned values come last."""
    found, known = dict.fromkeys(values.astype(object)), set(planned)
    return (*(value for value in planned if value in found), *(value for value in found if value not in known))


def _values(rows: pd.DataFrame, *columns: str) -> Iterator[tuple[Any, ...]]:
    return zip(*(rows[name].astype(object) for name in columns), strict=True)
