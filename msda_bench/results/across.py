"""Methods compared across datasets: a number each, tests of pairs, and groups without a significant difference."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import TypeAlias

from msda_bench.results.pairs import MIN_PAIRS_ACROSS, Row, adjusted, compared
from msda_bench.results.scores import Grid

METRIC = "accuracy_percent"
"""Squared errors of different datasets have no common unit."""


@dataclass(frozen=True)
class Across:
    """All experiments of a suite, or of merged folders, seen together.

    Attributes:
        datasets: those that count, in the plan's order; experiments of one dataset are averaged.
        methods: those that are ranked in every experiment that counts, the best mean rank first.
        mean_ranks: by method, 1 being the best, ties sharing their mean rank; over the datasets where every method has
            a mean. They place the methods on the axis and are not tested. Empty where there is no such dataset.
        rows: the comparisons of all pairs, scope across_datasets, in the order of the first experiment's table.
        cliques: the largest groups of two methods or more without a significant difference after Holm's correction;
            empty unless there are enough datasets. They come from the pairs, not from mean ranks (Benavoli, Corani and
            Mangili 2016), so one may leave out a method that stands between two of its members.
        left_out: what does not count and why, one line each.
        alpha: the level.
    """

    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    mean_ranks: Mapping[str, float]
    rows: tuple[Row, ...]
    cliques: tuple[tuple[str, ...], ...]
    left_out: tuple[str, ...]
    alpha: float

    @property
    def concludes(self) -> bool:
        """Whether there are methods to compare, and datasets enough for a test to reach 0.05."""
        return len(self.methods) > 1 and len(self.datasets) >= MIN_PAIRS_ACROSS

    @property
    def reason(self) -> str:
        """How it was compared, or why not, in a sentence."""
        n = len(self.datasets)
        if len(self.methods) < 2:  # noqa: PLR2004
            return "fewer than two methods are ranked in every experiment: nothing to compare across datasets"
        if not self.concludes:
            plural = "" if n == 1 else "s"
            return f"{n} dataset{plural}: under {MIN_PAIRS_ACROSS} no test across datasets can be significant"
        return f"{n} datasets, exact two-sided Wilcoxon signed-rank tests with Holm's correction"


_Datasets: TypeAlias = Mapping[str, Sequence[Grid]]


def across_datasets(found: Sequence[Grid]) -> Across | None:
    """Compares the methods that all experiments share; a dataset's number is a method's mean over targets and seeds.

    Only experiments of accuracy count.

    Args:
        found: all experiments.

    Returns:
        The comparison; None with fewer than two datasets.
    """
    counted = [grid for grid in found if grid.metric == METRIC]
    by_dataset: dict[str, list[Grid]] = {}
    for grid in counted:
        by_dataset.setdefault(grid.experiment.dataset, []).append(grid)
    if len(by_dataset) < 2:  # noqa: PLR2004
        return None
    names = [name for name in counted[0].ranked if all(name in grid.ranked for grid in counted)]
    alpha = min(grid.experiment.alpha for grid in counted)
    rows = adjusted([_compared(by_dataset, pair, alpha) for pair in combinations(names, 2)], alpha)
    ranks = _mean_ranks(by_dataset, names)
    best_first = sorted(names, key=lambda name: ranks.get(name, 0.0))
    different = [(row["first"], row["second"]) for row in rows if row["significant_holm"]]
    about = {"experiment": None, "dataset": None, "metric": METRIC}
    return Across(
        datasets=tuple(by_dataset),
        methods=tuple(best_first),
        mean_ranks=ranks,
        rows=tuple(about | row for row in rows),
        cliques=cliques(best_first, different) if len(by_dataset) >= MIN_PAIRS_ACROSS else (),
        left_out=tuple(_left_out(found, names)),
        alpha=alpha,
    )


def _compared(datasets: _Datasets, pair: tuple[str, str], alpha: float) -> Row:
    differences, complete = [], True
    for grids in datasets.values():
        means = []
        for grid in grids:
            merits = grid.merits[None]
            both = merits.differences(*pair)
            complete &= len(both) == len(grid.seeds)
            means += [merits.unit * Fraction(sum(both), len(both))] if both else []
        differences += [sum(means, Fraction()) / len(means)] if means else []
    return compared("across_datasets", None, pair, differences, len(datasets), complete=complete, alpha=alpha)


def _mean_ranks(datasets: _Datasets, names: Sequence[str]) -> dict[str, float]:
    rows = []
    for grids in datasets.values():
        means = {name: _mean(grids, name) for name in names}
        merits = {name: mean for name, mean in means.items() if mean is not None}
        if len(merits) == len(names):
            rows.append({name: _midrank(merits, name) for name in names})
    return {name: float(sum(row[name] for row in rows) / len(rows)) for name in names} if rows else {}


def _mean(grids: Sequence[Grid], name: str) -> Fraction | None:
    means = []
    for grid in grids:
        merits = grid.merits[None]
        if own := merits.by_seed[name]:
            means.append(merits.unit * Fraction(sum(own.values()), len(own)))
    return sum(means, Fraction()) / len(means) if means else None


def _midrank(merits: Mapping[str, Fraction], name: str) -> Fraction:
    above = sum(merit > merits[name] for merit in merits.values())
    return above + Fraction(1 + sum(merit == merits[name] for merit in merits.values()), 2)


def cliques(names: Sequence[str], different: Iterable[tuple[str, str]]) -> tuple[tuple[str, ...], ...]:
    """The largest groups of two methods or more in which no two differ significantly.

    Args:
        names: the methods, the best first.
        different: pairs that differ significantly.

    Returns:
        Groups in the order of `names`; those that begin earlier first.
    """
    import networkx as nx

    alike = nx.complete_graph(names)
    alike.remove_edges_from(different)
    places = sorted(sorted(map(names.index, group)) for group in nx.find_cliques(alike))
    return tuple(tuple(names[place] for place in group) for group in places if len(group) > 1)


def _left_out(found: Sequence[Grid], names: Sequence[str]) -> Iterator[str]:
    for grid in found:
        if grid.metric != METRIC:
            yield f"{grid.experiment.name}: its metric is {grid.metric}, not accuracy"
        elif other := [name for name in grid.ranked if name not in names]:
            yield f"{grid.experiment.name}: {', '.join(other)} not ranked in every experiment"
