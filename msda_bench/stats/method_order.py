"""Whether methods stand in the published order."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

from msda_bench.stats.scores import Scores
from msda_bench.stats.standardised import Gap, gap
from msda_bench.stats.summary import summarize
from msda_bench.suite.published.table import PublishedTable


@dataclass(frozen=True)
class Inversion:
    """Two methods that stand the other way round than published.

    Attributes:
        first: the better one as published.
        second: the other.
        published: mean of first - mean of second, positive.
        gap: from that to ours, which is negative.
    """

    first: str
    second: str
    published: float
    gap: Gap

    @property
    def ours(self) -> float:
        """Our mean of first - mean of second, over the seeds of both."""
        return self.published + self.gap.difference


@dataclass(frozen=True)
class MethodOrder:
    """The methods by their means over the targets, references left out.

    Attributes:
        published: all that the table has, the best first.
        ours: those that have runs, the best first.
        pairs: pairs that the table puts in an order and that have seeds in common.
        inversions: those in the other order.
    """

    published: tuple[str, ...]
    ours: tuple[str, ...]
    pairs: int
    inversions: tuple[Inversion, ...]

    @property
    def contradictions(self) -> tuple[Inversion, ...]:
        """The inversions that are more than noise."""
        return tuple(inversion for inversion in self.inversions if not inversion.gap.is_near)


def method_order(table: PublishedTable, scores: Scores) -> MethodOrder:
    """Holds the order of our means over the targets against the published one.

    Our difference between two methods is taken seed by seed. The standard error of the published one is taken from
    those of both means as if the runs were not paired, which is too much where runs of one seed rise and fall together:
    an inversion is called noise too often rather than too seldom.

    Args:
        table: what was published.
        scores: of its targets and of such of its methods as there are.
    """
    averages = {row.method: row.cells[-1] for row in table.rows if not row.reference}
    published = sorted(averages, key=lambda name: -averages[name].mean)
    seeds = {name: scores.by_seed(name, None) for name in averages}
    means = {name: sum(found.values()) / len(found) for name, found in seeds.items() if found}
    pairs = 0
    inversions = []
    for first, second in combinations(published, 2):
        difference = averages[first].mean - averages[second].mean
        ours = summarize(seeds[first][seed] - seeds[second][seed] for seed in seeds[first] if seed in seeds[second])
        error = math.hypot(averages[first].standard_error, averages[second].standard_error)
        found = gap(ours, difference, error, table.runs)
        if found is None or difference == 0:
            continue
        pairs += 1
        if ours.mean is not None and ours.mean < 0:
            inversions.append(Inversion(first, second, difference, found))
    ours_sorted = tuple(sorted(means, key=lambda name: -means[name]))
    return MethodOrder(tuple(published), ours_sorted, pairs, tuple(inversions))
