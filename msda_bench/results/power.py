"""Plans a suite before it is run: from a few pilot runs the seeds that find a gain, the hours, and what seeds miss."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from msda_bench.results.decision import tested
from msda_bench.results.estimates import detectable_shift, summarize
from msda_bench.results.frame import experiments
from msda_bench.results.scores import Grid, grids, mean_by_seed, paired
from msda_bench.suite.cell import Cell
from msda_bench.suite.plan import Experiment

TEN = 10
"""The seeds that many suites take; a plan says what they would miss."""
SURE = 0.8
"""The confidence of the upper limit of a standard deviation."""
_MOST_SEEDS = 10_000

Smallest: TypeAlias = Callable[[int, float], float | None]
"""The smallest true gain that so many seeds find with a probability; None if they can find none."""


class Spread(NamedTuple):
    """The standard deviations of the methods' differences from the baseline over a pilot's seeds.

    Attributes:
        deviations: by method, in points.
        seeds: the median of the methods' numbers of pairs.
        targets: those whose mean the differences are of.
    """

    deviations: Mapping[str, float]
    seeds: int
    targets: tuple[str, ...]


class Pilot:
    """A frame of runs from which standard deviations and seconds are taken, for experiments of the same data set."""

    def __init__(self, runs: pd.DataFrame) -> None:
        ok = {experiment.name: rows[rows["status"] == "ok"] for experiment, rows in experiments(runs)}
        self._rows = {name: rows for name, rows in ok.items() if len(rows)}
        self._grids = [grid for grid in grids(runs) if grid.experiment.name in self._rows]
        self.devices = tuple(runs.loc[runs["status"] == "ok", "device_name"].dropna().unique())

    def like(self, experiment: Experiment) -> Grid | None:
        """The runs on the same data set; rather those altered alike, and of the experiment of this name."""

        def altered(table: Experiment) -> tuple[str | None, ...]:
            return table.corrupted, table.without, table.label_shift

        def distance(grid: Grid) -> tuple[bool, bool]:
            return altered(grid.experiment) != altered(experiment), grid.experiment.name != experiment.name

        return min(
            (grid for grid in self._grids if grid.experiment.dataset == experiment.dataset), key=distance, default=None
        )

    def spread(self, experiment: Experiment) -> Spread | None:
        """The standard deviations, over the targets that both have; None without two pairs of any method."""
        grid, baseline = self.like(experiment), experiment.baseline
        is_percent = experiment.measure.percent and grid is not None and grid.metric == experiment.measure.column
        if grid is None or baseline not in grid.methods or not is_percent:
            return None
        targets = tuple(
            target for target in experiment.targets if target in grid.targets and grid.merits[target].by_seed[baseline]
        )
        merits = {
            name: mean_by_seed([grid.merits[target].by_seed[name] for target in targets]) for name in grid.methods
        }
        differences = {
            name: np.subtract(*paired(merits[name], merits[baseline])).tolist()
            for name in tested(experiment)
            if name in merits
        }
        sums = {name: summarize(values) for name, values in differences.items() if len(values) > 1}
        if not sums:
            return None
        deviations = {name: of.standard_error * math.sqrt(of.n) for name, of in sums.items()}
        return Spread(deviations, round(median(of.n for of in sums.values())), targets)

    def seconds(self, experiment: Experiment) -> Callable[[str, Cell], float] | None:
        """The expected seconds of a method's cell: the mean of its runs, or of an unknown method the median of all.

        Seconds are in proportion to the steps of the cell, if its suite gives them. None without any run.
        """
        timed = self.timed(experiment)
        if not timed:
            return None
        all_seconds, all_steps = zip(*timed.values(), strict=True)
        usual = float(median(all_seconds)), float(median(all_steps))

        def expected(method: str, cell: Cell) -> float:
            seconds, steps = timed.get(method, usual)
            training = cell.training
            planned = training.steps and training.steps * (training.epochs or 1)
            return seconds * planned / steps if planned and steps > 0 else seconds

        return expected

    def timed(self, experiment: Experiment) -> dict[str, tuple[float, float]]:
        """The mean seconds and steps of the runs of each method on the same data set."""
        grid = self.like(experiment)
        if grid is None:
            return {}
        rows = self._rows[grid.experiment.name].astype({"method": str, "steps": float}).fillna({"steps": 0.0})
        means = rows.groupby("method")[["train_seconds", "steps"]].mean().dropna()
        return {name: (seconds, steps) for name, seconds, steps in means.itertuples(name=None)}


def of_experiment(deviation: float, level: float) -> Smallest:
    """What the signed-rank test at this level finds, of differences with this standard deviation."""

    def smallest(seeds: int, power: float) -> float | None:
        shift = detectable_shift(seeds, level, power)
        return None if shift is None else shift * deviation

    return smallest


def of_mean(deviations: Sequence[float], level: float) -> Smallest:
    """What Student's t test of the mean gain over experiments finds; each has its own standard deviation and seeds.

    Variances add up, with Welch's and Satterthwaite's degrees of freedom.
    """
    from scipy.special import nctdtrinc, stdtrit

    error, freedom = math.hypot(*deviations) / len(deviations), _freedom(deviations)

    def smallest(seeds: int, power: float) -> float | None:
        if seeds < 2:  # noqa: PLR2004 - one seed has no spread
            return None
        df = freedom * (seeds - 1)
        return float(nctdtrinc(df, 1 - power, stdtrit(df, 1 - level / 2))) * error / math.sqrt(seeds)

    return smallest


def seeds_for(smallest: Smallest, gain: float, power: float) -> int | None:
    """The fewest seeds that find a true gain with this probability; None if that takes more than 10,000."""

    def finds(seeds: int) -> bool:
        size = smallest(seeds, power)
        return size is not None and size <= gain

    seeds = 1 + bisect_left(range(1, _MOST_SEEDS + 1), x=True, key=finds)
    return seeds if seeds <= _MOST_SEEDS else None


def missed(smallest: Smallest, gain: float, seeds: int) -> float:
    """The probability that so many seeds do not find a true gain, to a thousandth."""

    def exceeds(thousandths: int) -> bool:
        size = smallest(seeds, thousandths / 1000)
        return size is None or size > gain

    return 1 - bisect_left(range(1, 1000), x=True, key=exceeds) / 1000


def upper_limit(freedom: float) -> float:
    """How many times its estimate a standard deviation of so many degrees of freedom is at most, with 80 % confidence.

    The estimate's square times the degrees of freedom, over the true one, is chi-squared.
    """
    from scipy.special import chdtri

    return math.sqrt(freedom / chdtri(freedom, SURE))


class Answer(NamedTuple):
    """What a design finds, and what it takes.

    Attributes:
        finds: the smallest true gain that the suite's own seeds find.
        needed: the seeds that find the gain asked for; None for more than 10,000, as for the other numbers of seeds.
        at_most: as many as that takes if the standard deviation is at its upper limit.
        of_every_method: those that find it for the method whose differences vary most.
        ten_find: the smallest true gain that ten seeds find.
        ten_miss: the probability that ten seeds do not find the gain asked for.
        equivalent: the seeds that show a method without any gain equivalent within the margin; None without a margin.
    """

    finds: float | None
    needed: int | None
    at_most: int | None
    of_every_method: int | None
    ten_find: float | None
    ten_miss: float
    equivalent: int | None = None


class Design(NamedTuple):
    """The tests of the gains of an experiment, or of their means over data sets.

    Attributes:
        deviation: the standard deviation of the difference at one seed, the median of the methods.
        pilot_seeds: the seeds that it is from.
        usual: the test of a method with this standard deviation.
        careful: that with its upper limit.
        worst: that of the method with the largest one.
        one_sided: the one-sided test of a method with this standard deviation.
    """

    deviation: float
    pilot_seeds: int
    usual: Smallest
    careful: Smallest
    worst: Smallest
    one_sided: Smallest

    def answer(self, seeds: int, gain: float, power: float, margin: float | None = None) -> Answer:
        """What so many seeds find, and what it takes to find the gain with this probability, or its absence.

        Equivalence takes two one-sided tests. Without any gain each fails equally often, at most one at a time.
        """
        needed, at_most, of_every = (seeds_for(test, gain, power) for test in (self.usual, self.careful, self.worst))
        ten_find, ten_miss = self.usual(TEN, power), missed(self.usual, gain, TEN)
        equivalent = None if margin is None else seeds_for(self.one_sided, margin, (1 + power) / 2)
        return Answer(self.usual(seeds, power), needed, at_most, of_every, ten_find, ten_miss, equivalent)


def design_of(spread: Spread, level: float) -> Design:
    """The tests of an experiment at this level."""
    middle, largest = median(spread.deviations.values()), max(spread.deviations.values())
    sizes = (middle, middle * upper_limit(spread.seeds - 1), largest)
    usual, careful, worst = (of_experiment(size, level) for size in sizes)
    return Design(middle, spread.seeds, usual, careful, worst, of_experiment(middle, 2 * level))


def design_of_mean(spreads: Sequence[Spread], level: float) -> Design | None:
    """The tests of the mean gains over several experiments at this level; None without a method of all of them."""
    names = [name for name in spreads[0].deviations if all(name in spread.deviations for spread in spreads)]
    if not names:
        return None
    by_size = sorted(
        ([spread.deviations[name] for spread in spreads] for name in names), key=lambda sizes: math.hypot(*sizes)
    )
    middle, seeds = by_size[(len(names) - 1) // 2], min(spread.seeds for spread in spreads)
    limit = upper_limit(_freedom(middle) * (seeds - 1))
    cases = (middle, [limit * size for size in middle], by_size[-1])
    usual, careful, worst = (of_mean(sizes, level) for sizes in cases)
    deviation = math.hypot(*middle) / len(middle)
    return Design(deviation, seeds, usual, careful, worst, of_mean(middle, 2 * level))


def _freedom(deviations: Sequence[float]) -> float:
    """Welch's and Satterthwaite's degrees of freedom of the mean, over those of one experiment."""
    squares = [size**2 for size in deviations]
    return sum(squares) ** 2 / sum(square**2 for square in squares) if any(squares) else 1.0
