"""Compares methods across datasets: mean ranks, tests of pairs, groups without a significant difference, and gains.

Each experiment tests the gains over the baseline over its own seeds; the other tests are over the datasets.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import TypeAlias

import pandas as pd

from msda_bench.results.pairs import ALL_PAIRS, MIN_PAIRS_ACROSS, MOST_ALL_PAIRS, Row, adjusted, compared
from msda_bench.results.scores import Grid, grids
from msda_bench.results.signed_rank import doubled_midranks, scaled_integers
from msda_bench.results.words import name_of

_STANDINGS = ("method", "reference", "mean_rank", "mean_gain", "n_better", "n_worse", "n_tested", "n_experiments")
METRIC = "accuracy_percent"
"""The only metric that is compared across datasets: their squared errors have no common unit."""


@dataclass(frozen=True)
class Across:
    """A comparison over all experiments of a suite, or of merged folders.

    `mean_ranks` (1 is the best) are over the datasets where every method has a mean. They order the methods and are
    not tested. `cliques` are the largest groups without a significant difference after Holm's correction. They come
    from the pairs, not from mean ranks (Benavoli, Corani and Mangili 2016), so a clique may skip a method that ranks
    between two of its members. With too few datasets there are none.

    `gains` has a row for each counted experiment and each of its methods except the baseline: `experiment, method,
    reference`, the mean `gain`, `better` and `tested`. `better` reports whether the method is significantly better
    than the baseline (False: worse, None: no significant difference), by signed-rank tests over the seeds with Holm's
    correction over the experiment's methods. `tested` reports whether a test could show a difference. There are no
    gains unless all experiments share a baseline. `is_tuned` reports whether the baseline's settings are selected.
    """

    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    mean_ranks: Mapping[str, float]
    rows: tuple[Row, ...]
    cliques: tuple[tuple[str, ...], ...]
    skipped: tuple[str, ...]
    alpha: float
    baseline: str | None = None
    is_tuned: bool = False
    gains: tuple[Row, ...] = ()

    @property
    def experiments(self) -> tuple[str, ...]:
        """The experiments that have gains."""
        return tuple(dict.fromkeys(row["experiment"] for row in self.gains))

    @property
    def concludes(self) -> bool:
        """Whether there are methods to compare, and enough datasets for a test to reach 0.05."""
        return len(self.methods) > 1 and len(self.datasets) >= MIN_PAIRS_ACROSS

    @property
    def separates(self) -> bool:
        """Whether any pair of methods could differ significantly after Holm's correction."""
        return self.concludes and min(row["attainable_p_holm"] for row in self.rows) <= self.alpha

    @property
    def reason(self) -> str:
        """A sentence on how the methods were compared, or why they were not."""
        n = len(self.datasets)
        if len(self.methods) < 2:  # noqa: PLR2004
            return "fewer than two methods are ranked in every experiment: nothing to compare across datasets"
        if not self.concludes:
            plural = "" if n == 1 else "s"
            return f"{n} dataset{plural}: under {MIN_PAIRS_ACROSS} no test across datasets can be significant"
        return f"{n} datasets, exact two-sided Wilcoxon signed-rank tests with Holm's correction"


_Datasets: TypeAlias = Mapping[str, Sequence[Grid]]


def across(runs: pd.DataFrame) -> pd.DataFrame:
    """Compares the methods of a folder across its datasets.

    Args:
        runs: a frame from `load_results`, or some of its rows, which are compared as if they were the whole plan.

    Returns:
        One row per method, the best mean rank first, references last: `method, reference, mean_rank`, `mean_gain` (its
        gain over the baseline, mean over experiments), `n_better` and `n_worse` (experiments where it is significantly
        better or worse than the baseline), `n_tested` (experiments where a test could show a difference),
        `n_experiments`, and for each experiment the columns `gain:NAME` and `better:NAME`.

    Raises:
        ValueError: there are fewer than two datasets of accuracy.
    """
    found = across_datasets(list(grids(runs)))
    if found is None:
        raise ValueError("nothing to compare: there are fewer than two datasets of accuracy")
    return standings(found)


def standings(found: Across) -> pd.DataFrame:
    """Builds the frame that `across` returns."""
    names = dict.fromkeys([*found.methods, *(row["method"] for row in found.gains)])
    rows = {
        name: {"method": name, "reference": False, "mean_rank": found.mean_ranks.get(name), "mean_gain": None}
        | dict.fromkeys(("n_better", "n_worse", "n_tested", "n_experiments"), 0)
        for name in names
    }
    for row in found.gains:
        own, name = rows[row["method"]], row["experiment"]
        own["reference"] = own["reference"] or row["reference"]
        own["n_better"] += row["better"] is True
        own["n_worse"] += row["better"] is False
        own["n_tested"] += row["tested"]
        own["n_experiments"] += row["gain"] is not None
        own |= {f"gain:{name}": row["gain"], f"better:{name}": row["better"]}
    more = [f"{what}:{name}" for what in ("gain", "better") for name in found.experiments]
    frame = pd.DataFrame(list(rows.values()), columns=[*_STANDINGS, *more])
    gains = [f"gain:{name}" for name in found.experiments]
    frame = frame.astype(dict.fromkeys(["mean_rank", "mean_gain", *gains], float))
    frame = frame.astype({f"better:{name}": "boolean" for name in found.experiments})
    frame["mean_gain"] = frame[gains].mean(axis=1)
    return frame.sort_values("reference", kind="stable", ignore_index=True)


def across_datasets(found: Sequence[Grid]) -> Across | None:
    """Compares the methods that all experiments share, by their means over the targets and seeds of each dataset.

    Only experiments whose metric is accuracy count. An experiment with a corrupted source, or without one of its
    sources, does not count if another one uses its dataset unaltered. The result is None for fewer than two datasets.
    """
    accurate = [grid for grid in found if grid.metric == METRIC]
    sound = {grid.experiment.dataset for grid in accurate if not grid.experiment.is_altered}
    counted = [grid for grid in accurate if not grid.experiment.is_altered or grid.experiment.dataset not in sound]
    by_dataset: dict[str, list[Grid]] = {}
    for grid in counted:
        by_dataset.setdefault(grid.experiment.dataset, []).append(grid)
    if len(by_dataset) < 2:  # noqa: PLR2004
        return None
    names = [name for name in counted[0].ranked if all(name in grid.ranked for grid in counted)]
    alpha = min(grid.experiment.alpha for grid in counted)
    baselines = {grid.experiment.baseline for grid in counted}
    baseline = baselines.pop() if len(baselines) == 1 and baselines <= {*names} else None
    family = ALL_PAIRS if baseline is None or len(names) <= MOST_ALL_PAIRS else f"against {baseline}"
    pairs = [_compared(by_dataset, pair, alpha) for pair in combinations(names, 2)]
    rows = adjusted(pairs, alpha, baseline, family)
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
        skipped=tuple(_skipped(found, counted, names)),
        alpha=alpha,
        baseline=baseline,
        is_tuned=baseline is not None and all(_selects(grid, baseline) for grid in counted),
        gains=() if baseline is None else tuple(row for grid in counted for row in _gains(grid, baseline)),
    )


def _selects(grid: Grid, method: str) -> bool:
    return any(one.search is not None for one in grid.experiment.methods if one.name == method)


def _gains(grid: Grid, baseline: str) -> Iterator[Row]:
    """Compares each method with the baseline, on the mean over targets."""
    experiment, merits = grid.experiment, grid.merits[None]
    found = {name: merits.differences(name, baseline) for name in grid.methods if name != baseline}
    pairs = [
        compared(
            "average",
            None,
            (name, baseline),
            differences,
            len(grid.seeds),
            complete=True,
            alpha=experiment.alpha,
            unit=merits.unit,
        )
        for name, differences in found.items()
        if name in grid.ranked
    ]
    tested = {row["first"]: row for row in adjusted(pairs, experiment.alpha)}
    for name, differences in found.items():
        row = tested.get(name, {"significant_holm": None, "attainable_p_holm": 1.0})
        yield {
            "experiment": experiment.name,
            "method": name,
            "reference": name in grid.references,
            "gain": float(merits.unit * Fraction(sum(differences), len(differences))) if differences else None,
            "better": row["better"] == name if row["significant_holm"] else None,
            "tested": row["attainable_p_holm"] <= experiment.alpha,
        }


def _compared(datasets: _Datasets, pair: tuple[str, str], alpha: float) -> Row:
    differences, complete = [], True
    for own in datasets.values():
        found = [grid.merits[None].differences(*pair) for grid in own]
        complete &= all(len(values) == len(grid.seeds) for grid, values in zip(own, found, strict=True))
        mean = _mean(own, found)
        differences += [] if mean is None else [mean]
    return compared("across_datasets", None, pair, differences, len(datasets), complete=complete, alpha=alpha)


def _mean_ranks(datasets: _Datasets, names: Sequence[str]) -> dict[str, float]:
    rows = []
    for own in datasets.values():
        means = [_mean(own, [grid.merits[None].by_seed[name].values() for grid in own]) for name in names]
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
        different: the pairs that differ significantly.

    Returns:
        The groups, each in the order of `names`, sorted by the places of their members.
    """
    import networkx as nx

    alike = nx.complete_graph(names)
    alike.remove_edges_from(different)
    places = sorted(sorted(map(names.index, group)) for group in nx.find_cliques(alike))
    return tuple(tuple(names[place] for place in group) for group in places if len(group) > 1)


def _skipped(found: Sequence[Grid], counted: Sequence[Grid], names: Sequence[str]) -> Iterator[str]:
    for grid in found:
        if grid.metric != METRIC:
            yield f"{grid.experiment.name}: its metric is {grid.metric}, not accuracy"
        elif grid not in counted:
            corrupted, left_out = grid.experiment.corrupted, grid.experiment.without
            what = (
                f"source {name_of(left_out)} is left out"
                if corrupted is None
                else f"the labels of source {name_of(corrupted)} are shuffled"
            )
            yield f"{grid.experiment.name}: {what}, and {name_of(grid.experiment.dataset)} itself counts"
        elif other := [name for name in grid.ranked if name not in names]:
            yield f"{grid.experiment.name}: {', '.join(other)} not ranked in every experiment"
