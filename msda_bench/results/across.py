"""Compares methods across datasets: mean ranks, tests of pairs, groups in which no difference was shown, and gains.

Gains over the baseline are decided in each experiment, over its seeds; the other tests are over the datasets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd

from msda_bench.errors import printable
from msda_bench.results.decision import (
    ALL_PAIRS,
    BETTER,
    MIN_PAIRS_ACROSS,
    MOST_ALL_PAIRS,
    NOT_SIGNIFICANT,
    OPPOSITE,
    UNKNOWN,
    WORSE,
    PairedComparison,
    comparisons,
    paired_statistics,
    test_family,
)
from msda_bench.results.estimates import MeanGain, mean_of, tied
from msda_bench.results.frame import runs_of
from msda_bench.results.scores import ScoreTable, paired, score_tables, tells_headroom
from msda_bench.results.words import first_of, name_of

_WHOLE = ("mean_rank", "mean_gain", "mean_gain_low", "mean_gain_high")
_COUNTS = ("n_better", "n_worse", "n_tested", "n_experiments")
Gain: TypeAlias = dict[str, Any]
"""A method's gain over the baseline in an experiment; see `Across`."""
METRIC = "accuracy_percent"
"""The only metric that is compared across datasets: their squared errors have no common unit."""


@dataclass(frozen=True)
class Across:
    """A comparison over all experiments of a suite.

    `mean_ranks` (1 is the best) are over the `n_ranked` datasets where every method has a mean; they order the methods
    and are not tested. `cliques` are the largest groups in which no difference was shown. They come from decided pairs,
    not from mean ranks (Benavoli, Corani and Mangili 2016), so a clique may skip a method that ranks between two of
    its members.

    `gains` has a row for each counted experiment and method, if all experiments share a baseline: `experiment, method,
    reference`, the mean `gain` over the `n` paired seeds, its standard `error`, which allows for the examples that
    seeds share, its interval (`low`, `high`), and the `outcome` against the baseline, its `reason` and the
    `detectable` gain, as decided in the experiment.

    `headroom` is the reference that tells what labels of the target gain: the one that all name, or else one that
    learns from the sources, too.
    """

    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    mean_ranks: Mapping[str, float]
    n_ranked: int
    rows: tuple[PairedComparison, ...]
    cliques: tuple[tuple[str, ...], ...]
    skipped: tuple[str, ...]
    alpha: float
    baseline: str | None = None
    gains: tuple[Gain, ...] = ()
    headroom: str | None = None

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
        """Whether there are enough datasets to show a difference between any two methods."""
        return self.concludes and any(row.is_tested for row in self.rows)

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


def across(runs: str | Path | pd.DataFrame) -> pd.DataFrame:
    """Compares the methods of a folder across its datasets.

    Args:
        runs: a result folder, a frame from `load_results`, or some of its rows, which are compared as if they were the
            whole plan.

    Returns:
        One row per method, those with most experiments first, then the largest mean gain, references last: `method,
        reference, mean_rank`, `mean_gain` (its gain over the baseline, mean over experiments), the ends of its
        1 - alpha interval, which allows for the examples that seeds share (`mean_gain_low`, `mean_gain_high`),
        `n_better` and `n_worse` (experiments where it is better or worse than the baseline), `n_tested` (experiments
        where a test could show a difference), `n_experiments`, and for each experiment the columns `gain:NAME` and
        `outcome:NAME`.

    Raises:
        ValueError: there are fewer than two datasets of accuracy.
    """
    comparison = across_of(runs_of(runs))
    if comparison is None:
        raise ValueError(
            "runs: nothing to compare: there are fewer than two datasets of accuracy, with any headroom asked for"
        )
    return standings(comparison)


def standings(comparison: Across) -> pd.DataFrame:
    """Builds the frame that `across` returns."""
    names = dict.fromkeys(comparison.methods)
    names.update(dict.fromkeys(row["method"] for row in comparison.gains))
    rows = [_standing(comparison, name) for name in names]
    gains = [f"gain:{name}" for name in comparison.experiments]
    outcomes = [f"outcome:{name}" for name in comparison.experiments]
    frame = pd.DataFrame(rows, columns=["method", "reference", *_WHOLE, *_COUNTS, *gains, *outcomes])
    frame = frame.astype(dict.fromkeys([*_WHOLE, *gains], float))
    is_baseline = frame["method"] == comparison.baseline
    gain = frame["mean_gain"].mask(is_baseline, 0.0)
    known = frame["n_experiments"].mask(is_baseline, frame["n_experiments"].max())
    order = pd.DataFrame({"reference": frame["reference"], "known": -known, "gain": -gain})
    order = order.sort_values(["reference", "known", "gain"], kind="stable")
    return frame.loc[order.index].reset_index(drop=True)


def _standing(comparison: Across, method: str) -> dict[str, Any]:
    """The row of one method; columns that it lacks have no value."""
    mine = [row for row in comparison.gains if row["method"] == method]
    known = [row for row in mine if row["gain"] is not None]
    row: dict[str, Any] = {
        "method": method,
        "reference": any(gain["reference"] for gain in mine),
        "mean_rank": comparison.mean_ranks.get(method),
        "n_experiments": len(known),
        "n_better": sum(gain["outcome"] == BETTER for gain in mine),
        "n_worse": sum(gain["outcome"] == WORSE for gain in mine),
        "n_tested": sum(map(_is_testable, mine)),
    }
    for gain in mine:
        row[f"gain:{gain['experiment']}"] = gain["gain"]
        row[f"outcome:{gain['experiment']}"] = gain["outcome"]
    if known:
        mean = MeanGain.of([(gain["gain"], gain["error"], gain["n"]) for gain in known])
        row["mean_gain"] = mean.mean
        row["mean_gain_low"], row["mean_gain_high"] = mean.interval(comparison.alpha)
    return row


def _is_testable(gain: Gain) -> bool:
    return gain["outcome"] in OPPOSITE or gain["reason"] == NOT_SIGNIFICANT


def across_of(runs: pd.DataFrame) -> Across | None:
    """Compares the methods of a frame of runs across its datasets; see `across_datasets`."""
    tables = list(score_tables(runs))
    return across_datasets(tables, [comparisons(table, whole=False) for table in tables])


def across_datasets(tables: Sequence[ScoreTable], pairs: Sequence[Sequence[PairedComparison]]) -> Across | None:
    """Compares the methods that all experiments share, by their means over the targets and seeds of each dataset.

    Only experiments with results whose metric is accuracy count, those with headroom where the suite asks for that, and
    one with an altered domain only if no other uses its dataset unaltered. `pairs` are the decided comparisons of each
    of the `tables`, on average at least; None for fewer than two datasets.
    """
    counted = _counted(tables)
    by_dataset: dict[str, list[ScoreTable]] = {}
    for table in counted:
        by_dataset.setdefault(table.experiment.dataset, []).append(table)
    if len(by_dataset) < 2:  # noqa: PLR2004
        return None
    names = [name for name in counted[0].ranked if all(name in table.ranked for table in counted)]
    baseline = _shared_baseline(counted, names)
    alpha = min(table.experiment.alpha for table in counted)
    compared = [_compared(by_dataset, pair, alpha) for pair in combinations(names, 2)]
    rows = _decided(compared, baseline if len(names) > MOST_ALL_PAIRS else None)
    ranked = _ranks(by_dataset, names)
    ranks = {str(name): float(rank) for name, rank in ranked.mean().items()}
    best_first = sorted(names, key=lambda name: ranks.get(name, 0.0))
    groups: tuple[tuple[str, ...], ...] = ()
    if len(by_dataset) >= MIN_PAIRS_ACROSS:
        groups = cliques(best_first, [row.pair for row in rows if row.outcome in OPPOSITE])
    gains: list[Gain] = []
    if baseline is not None:
        for table, decided in zip(tables, pairs, strict=True):
            if table in counted:
                gains += _gains(table, decided, baseline)
    return Across(
        datasets=tuple(by_dataset),
        methods=tuple(best_first),
        mean_ranks=ranks,
        n_ranked=len(ranked),
        rows=tuple(rows),
        cliques=groups,
        skipped=tuple(_skipped(tables, counted, names)),
        alpha=alpha,
        baseline=baseline,
        gains=tuple(gains),
        headroom=_headroom(counted, gains),
    )


def _counted(tables: Sequence[ScoreTable]) -> list[ScoreTable]:
    """The experiments that are compared; see `across_datasets`."""
    of_accuracy = [table for table in tables if table.metric == METRIC]
    unaltered = {table.experiment.dataset for table in of_accuracy if not table.experiment.is_altered}
    counted = []
    for table in of_accuracy:
        is_repeated = table.experiment.is_altered and table.experiment.dataset in unaltered
        if table.has_results and table.has_headroom and not is_repeated:
            counted.append(table)
    return counted


def _shared_baseline(counted: Sequence[ScoreTable], names: Sequence[str]) -> str | None:
    """The baseline of all experiments, if it is the same and one of the compared methods."""
    baselines = {table.experiment.baseline for table in counted}
    if len(baselines) > 1:
        return None
    baseline = baselines.pop()
    return baseline if baseline in names else None


def _headroom(counted: Sequence[ScoreTable], gains: Sequence[Gain]) -> str | None:
    """The reference that shows the headroom of all experiments, by its mean gain over the experiments that have it."""
    named: set[str | None] = set()
    labelled: set[str] = set()
    recipes: dict[str, str] = {}
    for table in counted:
        named.add(table.experiment.headroom)
        labelled.update(table.labelled)
        recipes.update({method.name: method.recipe for method in table.experiment.methods})
    by_method: dict[str, list[float]] = {}
    for row in gains:
        if row["method"] in labelled and row["gain"] is not None:
            by_method.setdefault(row["method"], []).append(row["gain"])
    means = {name: mean_of(gained) for name, gained in by_method.items()}
    shared = named.pop() if len(named) == 1 else None
    return tells_headroom(shared, recipes, means)


def _gains(table: ScoreTable, pairs: Sequence[PairedComparison], baseline: str) -> Iterator[Gain]:
    """Each method's gain over the baseline, on the mean over targets, as decided in the experiment."""
    decisions = {row.other(baseline): row for row in pairs if row.scope == "average" and baseline in row.pair}
    for name in table.methods:
        if name == baseline:
            continue
        gain = table.gain(name, baseline, None).allowing(table.overlap(None))
        low, high = gain.interval(table.experiment.alpha)
        row = decisions.get(name)
        yield {
            "experiment": table.experiment.name,
            "method": name,
            "reference": name in table.references,
            "gain": gain.mean if gain.n else None,
            "error": gain.standard_error,
            "low": low,
            "high": high,
            "n": gain.n,
            "outcome": UNKNOWN if row is None else row.outcome_of(name),
            "reason": None if row is None else row.reason,
            "detectable": None if row is None else row.detectable,
        }


def _compared(datasets: Mapping[str, Sequence[ScoreTable]], pair: tuple[str, str], alpha: float) -> PairedComparison:
    """Compares two methods by the difference of their means on each dataset; not decided yet."""
    differences = []
    decimals = []
    complete = True
    for of_dataset in datasets.values():
        firsts = []
        seconds = []
        for table in of_dataset:
            first, second = paired(*(table.of(name, None) for name in pair))
            decimals.append(table.decimals[-1])
            if len(first) < len(table.seeds):
                complete = False
            if first:
                firsts.append(mean_of(first))
                seconds.append(mean_of(second))
        if firsts:
            differences.append(mean_of(firsts) - mean_of(seconds))
    return paired_statistics(
        "across_datasets",
        None,
        pair,
        differences,
        len(datasets),
        metric=METRIC,
        alpha=alpha,
        decimals=min(decimals),
        complete=complete,
    )


def _decided(rows: Sequence[PairedComparison], baseline: str | None) -> list[PairedComparison]:
    """All pairs as one family; with a baseline, its pairs are a family of their own."""
    every = test_family(rows, ALL_PAIRS)
    places = [place for place, row in enumerate(rows) if baseline in row.pair]
    own = test_family([rows[place] for place in places], f"against {baseline}")
    for place, row in zip(places, own, strict=True):
        every[place] = row
    return every


def _ranks(datasets: Mapping[str, Sequence[ScoreTable]], names: Sequence[str]) -> pd.DataFrame:
    """A row for each dataset where every method has a mean: the ranks of its means in the dataset's experiments."""
    rows = []
    for of_dataset in datasets.values():
        merits = {}
        for name in names:
            scores = [table.known(name, None) for table in of_dataset]
            means = [mean_of(of_table) for of_table in scores if of_table]
            if means:
                merits[name] = tied(mean_of(means))
        if len(merits) == len(names):
            rows.append(pd.Series(merits).rank(ascending=False))
    return pd.DataFrame(rows)


def cliques(names: Sequence[str], different: Iterable[tuple[str, str]]) -> tuple[tuple[str, ...], ...]:
    """The largest groups of two `names` or more without a pair that differs, in the order of `names`."""
    neighbours = {name: {*names} - {name} for name in names}
    for first, second in different:
        neighbours[first].discard(second)
        neighbours[second].discard(first)
    groups = _grown(frozenset(), {*names}, set(), neighbours)
    places_of_groups = sorted(sorted(map(names.index, group)) for group in groups)
    several = []
    for places in places_of_groups:
        if len(places) > 1:
            several.append(tuple(names[place] for place in places))
    return tuple(several)


def _grown(
    group: frozenset[str], more: set[str], seen: set[str], neighbours: Mapping[str, set[str]]
) -> Iterator[frozenset[str]]:
    """The largest groups that hold this one, some of `more` and none of `seen` (Bron and Kerbosch 1973, with pivot)."""
    if not more and not seen:
        yield group
        return
    # A largest group holds the pivot or a method unlike it.
    pivot = max(sorted(more | seen), key=lambda name: len(more & neighbours[name]))
    for name in sorted(more - neighbours[pivot]):
        yield from _grown(group | {name}, more & neighbours[name], seen & neighbours[name], neighbours)
        more = more - {name}
        seen = seen | {name}


def _skipped(tables: Sequence[ScoreTable], counted: Sequence[ScoreTable], names: Sequence[str]) -> Iterator[str]:
    """The experiments and methods that are not compared, and why."""
    by_reason: dict[str, list[str]] = {}
    for table in tables:
        if table not in counted:
            by_reason.setdefault(_why_skipped(table), []).append(name_of(table.experiment.name))
    for why, skipped in by_reason.items():
        yield f"{first_of(skipped)}: {why}"
    others: dict[str, None] = {}
    for table in counted:
        others.update(dict.fromkeys(name_of(name) for name in table.ranked if name not in names))
    if others:
        yield f"{first_of(others)}: not ranked in every experiment"


def _why_skipped(table: ScoreTable) -> str:
    experiment = table.experiment
    if not table.has_results:
        return "no results yet"
    if table.metric != METRIC:
        return f"its metric is {table.metric}, not accuracy"
    if not table.has_headroom:
        reference = name_of(experiment.headroom)
        return f"no headroom, since {reference} is not shown to gain over {name_of(experiment.baseline)}"
    altered = printable(experiment.label_shift or "a source is left out")
    if experiment.corrupted is not None:
        altered = f"the labels of source {name_of(experiment.corrupted)} are shuffled"
    return f"{altered}, and {name_of(experiment.dataset)} itself counts"
