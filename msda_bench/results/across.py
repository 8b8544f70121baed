"""Compares methods across datasets: a number each, tests of pairs, and groups without a significant difference."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import TypeAlias

from msda_bench.results.pairs import MIN_PAIRS_ACROSS, Row, adjusted, compared
from msda_bench.results.scores import Grid
from msda_bench.results.signed_rank import doubled_midranks, scaled_integers

METRIC = "accuracy_percent"
"""Squared errors of different datasets have no common unit."""


@dataclass(frozen=True)
class Across:
    """A comparison over all experiments of a suite, or of merged folders.

    Mean ranks, 1 being the best, are over the datasets where every method has a mean. They place the methods on the
    axis, the best first, and are not tested. Cliques are the largest groups without a significant difference after
    Holm's correction; they come from the pairs, not from mean ranks (Benavoli, Corani and Mangili 2016), so a clique
    may skip a method that ranks between two of its members. There are none unless there are enough datasets.
    """

    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    mean_ranks: Mapping[str, float]
    rows: tuple[Row, ...]
    cliques: tuple[tuple[str, ...], ...]
    skipped: tuple[str, ...]
    alpha: float

    @property
    def concludes(self) -> bool:
        """Whether there are methods to compare, and enough datasets for a test to reach 0.05."""
        return len(self.methods) > 1 and len(self.datasets) >= MIN_PAIRS_ACROSS

    @property
    def reason(self) -> str:
        """How the methods were compared, or why not, in a sentence."""
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
        skipped=tuple(_skipped(found, names)),
        alpha=alpha,
    )


def _compared(datasets: _Datasets, pair: tuple[str, str], alpha: float) -> Row:
    differences, complete = [], True
    for grids in datasets.values():
        found = [grid.merits[None].differences(*pair) for grid in grids]
        complete &= all(len(own) == len(grid.seeds) for grid, own in zip(grids, found, strict=True))
        mean = _mean(grids, found)
        differences += [] if mean is None else [mean]
    return compared("across_datasets", None, pair, differences, len(datasets), complete=complete, alpha=alpha)


def _mean_ranks(datasets: _Datasets, names: Sequence[str]) -> dict[str, float]:
    rows = []
    for grids in datasets.values():
        means = [_mean(grids, [grid.merits[None].by_seed[name].values() for grid in grids]) for name in names]
        known = [-mean for mean in means if mean is not None]
        if len(known) == len(names):
            rows.append(doubled_midranks(scaled_integers(known)[0]))
    ranks = zip(*rows, strict=True)
    return {name: sum(own) / (2 * len(rows)) for name, own in zip(names, ranks, strict=True)} if rows else {}


def _mean(grids: Sequence[Grid], merits: Sequence[Collection[int]]) -> Fraction | None:
    """The mean over a dataset's experiments of the means of their merits; None if there are none."""
    pairs = zip(grids, merits, strict=True)
    means = [grid.merits[None].unit * Fraction(sum(own), len(own)) for grid, own in pairs if own]
    return sum(means, Fraction()) / len(means) if means else None


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


def _skipped(found: Sequence[Grid], names: Sequence[str]) -> Iterator[str]:
    for grid in found:
        if grid.metric != METRIC:
            yield f"{grid.experiment.name}: its metric is {grid.metric}, not accuracy"
        elif other := [name for name in grid.ranked if name not in names]:
            yield f"{grid.experiment.name}: {', '.join(other)} not ranked in every experiment"
