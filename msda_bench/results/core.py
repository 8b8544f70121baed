"""The core of a measurement: the fewest tasks and seeds that keep the order of its methods, chosen from its records."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from msda_bench.errors import BenchError
from msda_bench.results.across import counted_of
from msda_bench.results.estimates import mean_of
from msda_bench.results.notes import is_whole, problem_lines
from msda_bench.results.report import Column, Line, Report, Section, Table, Unit
from msda_bench.results.scores import grids
from msda_bench.results.words import counted, spans
from msda_bench.suite.mistakes import hint, shown

Reals: TypeAlias = NDArray[np.float64]
_DRAWS = 200
_CLEAR = 0.05
"""The level at which a pair of methods is clearly separated."""
_FEWEST_SEEDS, _FEWEST_METHODS = 4, 3
_PERCENT = Unit("", -2, 0)


class Task(NamedTuple):
    """A target of an experiment."""

    experiment: str
    target: str


@dataclass(frozen=True)
class Measured:
    """The gains over the baseline of all methods on all tasks at all seeds.

    Attributes:
        gains: (tasks, methods, seeds), in points.
        minutes: (tasks,), of all methods and the baseline at one seed.
    """

    tasks: tuple[Task, ...]
    methods: tuple[str, ...]
    seeds: tuple[int, ...]
    gains: Reals
    minutes: Reals

    def at(self, places: Sequence[int]) -> Measured:
        """The same at some of the seeds."""
        seeds = tuple(self.seeds[place] for place in places)
        return Measured(self.tasks, self.methods, seeds, self.gains[:, :, list(places)], self.minutes)

    def weights(self, chosen: Sequence[int]) -> Reals:
        """The weights of the tasks in a mean: experiments have equal ones, and so have the targets of an experiment."""
        names = [self.tasks[place].experiment for place in chosen]
        weights = np.zeros(len(self.tasks))
        weights[list(chosen)] = [1 / (len(set(names)) * names.count(name)) for name in names]
        return weights

    def means(self, chosen: Sequence[int]) -> Reals:
        """The mean gain of each method over some of the tasks."""
        return np.asarray(self.weights(chosen) @ self.gains.mean(axis=2))


class Order:
    """The order of the methods in a measurement, and which pairs it separates clearly.

    A pair is clear if Student's 95 % interval of its difference excludes zero; the variances of the tasks add up.
    """

    def __init__(self, measured: Measured) -> None:
        from scipy.special import stdtrit

        every = range(len(measured.tasks))
        pairs = list(combinations(range(len(measured.methods)), 2))
        self._first, self._second = np.array(pairs).T
        differences = measured.gains[:, self._first] - measured.gains[:, self._second]
        n = len(measured.seeds)
        error = np.sqrt(measured.weights(every) ** 2 @ differences.var(axis=2, ddof=1) / n)
        self._signs = np.sign(self._between(measured.means(every)))
        size = np.abs(self._between(measured.means(every)))
        self.clear = size > stdtrit(n - 1, 1 - _CLEAR / 2) * error

    def _between(self, means: Reals) -> Reals:
        return means[..., self._first] - means[..., self._second]

    def kept(self, means: Reals) -> float:
        """The share of the clear pairs that are in this order in the (..., methods) means; NaN without any."""
        if not self.clear.any():
            return math.nan
        return float((np.sign(self._between(means)) == self._signs)[..., self.clear].mean())

    def correlation(self, means: Reals) -> float:
        """Kendall's rank correlation of the means with this order."""
        return float((np.sign(self._between(means)) * self._signs).mean())


def measured_in(runs: pd.DataFrame, family: Sequence[str]) -> Measured:
    """The gains in a frame of runs, of the named methods, or the primary ones, or all that every experiment ranks.

    Raises:
        BenchError: there is no common baseline, a method is not there, or there are too few methods or seeds.
    """
    tables = list(grids(runs))
    counting = counted_of(grid.experiment for grid in tables)
    tables = [grid for grid in tables if grid.experiment in counting and grid.has_headroom]
    if not tables:
        raise BenchError("no experiment of accuracy counts here, by whose gains methods could be ordered")
    baselines = {grid.experiment.baseline for grid in tables}
    baseline = baselines.pop() if len(baselines) == 1 else None
    if baseline is None:
        raise BenchError(
            "the experiments of accuracy have no common baseline, over which methods could be ordered by gain"
        )
    ranked = [name for name in tables[0].ranked if name != baseline and all(name in grid.ranked for grid in tables)]
    primary = [name for name in ranked if all(name in grid.experiment.primary for grid in tables)]
    family = family or primary
    if baseline in family:
        raise BenchError(
            f"--methods: {shown(baseline)} is the baseline, over which the others are ordered; leave it out"
        )
    if absent := [name for name in family if name not in ranked]:
        raise BenchError(
            *(f"--methods: {shown(name)} is not ranked in every experiment{hint(name, ranked)}" for name in absent)
        )
    methods = tuple(name for name in ranked if name in family or not family)
    tasks = tuple(Task(grid.experiment.name, target) for grid in tables for target in grid.targets)
    merits = [grid.merits[target].by_seed for grid in tables for target in grid.targets]
    seeds = [
        seed for seed in tables[0].seeds if all(seed in of[name] for of in merits for name in (baseline, *methods))
    ]
    for what, number, fewest in (("method", len(methods), _FEWEST_METHODS), ("seed", len(seeds), _FEWEST_SEEDS)):
        if number < fewest:
            raise BenchError(f"{counted(number, what)} on all tasks; an order to keep takes at least {fewest}")
    gains = [[[of[name][seed] - of[baseline][seed] for seed in seeds] for name in methods] for of in merits]
    trained = runs[runs["method"].isin([baseline, *methods]) & runs["seed"].isin(seeds)]
    seconds = trained.groupby(["experiment", "target"], observed=True)["train_seconds"].sum()
    minutes = [seconds.get(task, math.nan) / 60 / len(seeds) for task in tasks]
    return Measured(tasks, methods, tuple(seeds), np.array(gains), np.array(minutes))


class Step(NamedTuple):
    """A task that is added to a core, and the share of the clear pairs that the core then keeps."""

    task: int
    kept: float


def path(measured: Measured, n: int) -> list[Step]:
    """All tasks in the order in which each keeps most of the clear pairs at n seeds, of equal ones the cheapest.

    The seeds are drawn with replacement, at each task apart.
    """
    order, (n_tasks, _, n_seeds) = Order(measured), measured.gains.shape
    places = np.random.Philox(key=n).random_raw((_DRAWS, n_tasks, n)) % n_seeds
    drawn = np.stack([measured.gains[task][:, places[:, task]].mean(axis=2) for task in range(n_tasks)])
    steps: list[Step] = []
    while len(steps) < n_tasks:
        before = [step.task for step in steps]
        tried = {
            task: order.kept(np.tensordot(measured.weights([*before, task]), drawn, 1).T)
            for task in range(n_tasks)
            if task not in before
        }
        best = max(tried, key=lambda task: (round(tried[task], 3), -measured.minutes[task]))
        steps.append(Step(best, tried[best]))
    return steps


class Core(NamedTuple):
    """Some tasks at the first seeds.

    Attributes:
        steps: the tasks in the order in which they were chosen.
        n_seeds: the number of seeds.
        minutes: what all methods and the baseline take.
    """

    steps: tuple[Step, ...]
    n_seeds: int
    minutes: float


def core_of(measured: Measured, agree: float) -> Core | None:
    """The cheapest part that keeps this share of the clear pairs, of up to half of the seeds; None if no part does.

    Its tasks at all seeds must put that share of all pairs in the same order, too, which is a tau of twice it minus 1.
    """
    cores, order = [], Order(measured)
    for n in range(1, len(measured.seeds) // 2 + 1):
        steps = path(measured, n)
        for length, step in enumerate(steps, 1):
            tau = order.correlation(measured.means([step.task for step in steps[:length]]))
            if step.kept >= agree and tau >= 2 * agree - 1:
                minutes = n * float(measured.minutes[[step.task for step in steps[:length]]].sum())
                cores.append(Core(tuple(steps[:length]), n, minutes))
                break
    return min(cores, key=lambda core: core.minutes, default=None)


class Judged(NamedTuple):
    """How a part kept the order of a measurement of other seeds: the share of its clear pairs, and Kendall's tau."""

    kept: float
    correlation: float


def judged(measured: Measured, core: Core) -> tuple[Judged, Judged]:
    """How well a core of this size keeps the order on seeds on which it was not chosen, and how well all tasks do.

    As many seeds as the core has are left out in turn; the order and the tasks come from the others.
    """
    n, total = core.n_seeds, len(measured.seeds)
    every = range(len(measured.tasks))
    parts: tuple[list[Judged], list[Judged]] = ([], [])
    for first in range(total):
        out = sorted((first + place) % total for place in range(n))
        rest, held = measured.at([place for place in range(total) if place not in out]), measured.at(out)
        order, chosen = Order(rest), [step.task for step in path(rest, n)[: len(core.steps)]]
        for part, tasks in zip(parts, (chosen, every), strict=True):
            part.append(Judged(order.kept(held.means(tasks)), order.correlation(held.means(tasks))))
    return _mean(parts[0]), _mean(parts[1])


def _mean(results: Sequence[Judged]) -> Judged:
    return Judged(
        mean_of(result.kept for result in results if not math.isnan(result.kept)),
        mean_of(result.correlation for result in results),
    )


def core_report(runs: pd.DataFrame, family: Sequence[str] = (), agree: float = 0.9) -> Report:
    """What `msda-bench core` answers.

    Raises:
        BenchError: as `measured_in`; or no pair is clearly separated, or no part keeps that many.
    """
    measured, plan = measured_in(runs, family), runs.attrs["plan"]
    order = Order(measured)
    if not order.clear.any():
        raise BenchError("no two methods are clearly separated here, so there is no order to keep")
    core = core_of(measured, agree)
    if core is None:
        raise BenchError(
            f"no part of up to half of the seeds keeps {agree:.0%} of the clearly separated pairs in order; ask for "
            "fewer with --agree"
        )
    rows, minutes = [], 0.0
    for length, step in enumerate(core.steps, 1):
        minutes += core.n_seeds * float(measured.minutes[step.task])
        tau = order.correlation(measured.means([step.task for step in core.steps[:length]]))
        rows.append({**measured.tasks[step.task]._asdict(), "minutes": minutes, "kept": step.kept, "correlation": tau})
    frame, (held, every) = pd.DataFrame(rows), judged(measured, core)
    seeds, total = measured.seeds[: core.n_seeds], float(measured.minutes.sum()) * len(measured.seeds)
    commands = [
        f"msda-bench run {plan.suite} --only {shlex.quote(text)}" for text in _selections(measured, core, seeds)
    ]
    unit = "GPU-minutes" if (runs["device"] == "cuda").any() else "core-minutes"
    tasks, of_seeds = counted(len(measured.tasks), "task"), counted(len(measured.seeds), "seed")
    n_methods = len(measured.methods) + 1
    kept, clear = core.steps[-1].kept, int(order.clear.sum())
    size = f"{len(rows)} of {tasks} and {len(seeds)} of {of_seeds}"
    cost = (
        f"{core.minutes:.1f} of {total:.0f} {unit} for all {n_methods} methods, {core.minutes / n_methods:.2f} for one"
    )
    left_out = f"on seeds on which it was not chosen {held.kept:.0%}, and tau is {held.correlation:.2f}"
    verdict = (
        f"The core has {size}: {cost}.",
        f"It keeps {kept:.0%} of the {clear} clearly separated pairs in order; {left_out}.",
        f"All tasks at as many seeds keep {every.kept:.0%}, and tau is {every.correlation:.2f}.",
    )
    columns = (
        Column("experiment", "text", ["experiment"]),
        Column("target", "text", ["target"]),
        Column(unit, "number", ["minutes"]),
        Column("pairs kept (%)", "number", ["kept"], _PERCENT),
        Column("tau", "correlation", ["correlation"]),
    )
    title = f"{plan.suite}: the fewest tasks and seeds that keep the order of {counted(n_methods - 1, 'method')}"
    table = Table("core", title, frame, columns, verdict=verdict, notes=(_LEGEND,), about=())
    lines = (
        *(Line("line", text, wrapped=False) for text in commands),
        *(Line("problem", text) for text in problem_lines(runs)),
    )
    return Report((Section((table,), lines),), frame, is_whole(runs))


_LEGEND = (
    "Each row adds a task. Pairs kept: the expected share of the pairs that the whole measurement separates clearly "
    "(Student's 95 % interval of the difference of their mean gains excludes zero) which so many seeds, drawn with "
    "replacement, put in the same order; tau: Kendall's rank correlation of the mean gains, at all seeds, with those "
    "of all tasks. Left out: as many seeds as the core has, in turn; the order and the tasks come from the others."
)


def _selections(measured: Measured, core: Core, seeds: Sequence[int]) -> Iterator[str]:
    """Values of `--only`: one for all experiments, unless that would select further targets of the same names."""
    chosen: dict[str, list[str]] = {}
    for step in core.steps:
        chosen.setdefault(measured.tasks[step.task].experiment, []).append(measured.tasks[step.task].target)
    targets = {target for of in chosen.values() for target in of}
    exact = all(
        task.target in chosen[task.experiment]
        for task in measured.tasks
        if task.experiment in chosen and task.target in targets
    )
    of_seeds = spans(seeds).replace(", ", "|")
    for names in [list(chosen)] if exact else [[name] for name in chosen]:
        of_targets = dict.fromkeys(target for name in names for target in chosen[name])
        yield f"experiment={'|'.join(names)},target={'|'.join(of_targets)},seed={of_seeds}"
