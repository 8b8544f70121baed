"""Puts the runs of an experiment on the full grid of methods, targets and seeds, with their scores."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from msda_bench.results.estimates import Summary, mean_of, summarize, tied
from msda_bench.results.frame import PROBLEMS, experiments
from msda_bench.results.model_selection import select
from msda_bench.results.runs import results_of
from msda_bench.results.signed_rank import signed_rank_tests
from msda_bench.results.small import averaged_targets, small_tests
from msda_bench.suite.plan import CHANCE_REFERENCE, Experiment

ScoreColumn: TypeAlias = str | None
"""A target, or None for the mean over targets."""

_DECIMALS, _MOST_DECIMALS = 9, 300
_COLUMNS = [
    "experiment",
    "method",
    "reference",
    "target",
    "seed",
    "status",
    "score",
    "n_test",
    "n_train",
    "target_labels",
]
"""All that grids are made from: frames of runs are wide, and each part of them a copy."""
_TARGET_ONLY = re.compile(r"target_only\b")
"""The recipe of a reference that does not learn from the sources begins so."""
_SEVERITY = {status: place for place, status in enumerate((*PROBLEMS, "ok"))}


@dataclass(frozen=True)
class SeedScores:
    """The scores of methods in one column; higher is better.

    Attributes:
        by_seed: merits by method, then by seed. A score of which less is better is negated.
        decimals: the decimals that count in a difference, so that those that are equal as fractions tie: 9 for
            percents, about eleven significant digits of other metrics. That is far coarser than the error of a float,
            and far finer than any real difference.
    """

    by_seed: Mapping[str, Mapping[int, float]]
    decimals: int

    def paired(self, first: str, second: str) -> tuple[list[float], list[float]]:
        """The merits of two methods at their common seeds, in order."""
        return paired(self.by_seed[first], self.by_seed[second])

    def means(self, names: Iterable[str]) -> dict[str, float]:
        """The mean merit of each of these methods; methods without merits are skipped."""
        return {name: tied(mean_of(merits.values())) for name in names if (merits := self.by_seed[name])}

    def differences(self, first: str, second: str) -> list[float]:
        """The first method's merit minus the second's, at each common seed."""
        return [merit - other for merit, other in zip(*self.paired(first, second), strict=True)]

    def gain(self, first: str, second: str) -> Summary:
        """The mean of these differences, with its standard error."""
        summary = summarize(self.differences(first, second))
        return summary._replace(mean=round(summary.mean, self.decimals)) if summary.n else summary


def paired(first: Mapping[int, float], second: Mapping[int, float]) -> tuple[list[float], list[float]]:
    """Two methods' merits by seed, at the seeds that both have, in order."""
    if first.keys() == second.keys():  # both in the order of the seeds
        return list(first.values()), list(second.values())
    both = [seed for seed in first if seed in second]
    return [first[seed] for seed in both], [second[seed] for seed in both]


@dataclass(frozen=True)
class ScoreTable:
    """An experiment's runs on a full grid; runs without a row are missing.

    `methods`, `targets` and `seeds` are those that have rows, in the plan's order. `references` are shown, but not
    ranked or tested. `statuses` are by method and target, then by seed. `overlap` is the number of the target's test
    examples over that of its training examples, a mean over the runs; 0 where the records do not have both.
    `averaged` are the targets of the mean: those that are not `small`, with too few test examples to show a difference,
    or all if all are small.
    `has_headroom` is False where the suite names a reference that is not shown to gain over the baseline. `labelled`
    are the references that learn from labels of the target.
    """

    experiment: Experiment
    methods: tuple[str, ...]
    references: frozenset[str]
    targets: tuple[str, ...]
    averaged: tuple[str, ...]
    small: frozenset[str]
    seeds: tuple[int, ...]
    statuses: Mapping[tuple[str, str], Mapping[int, str]]
    merits: Mapping[ScoreColumn, SeedScores] = field(repr=False)
    overlap: Mapping[ScoreColumn, float] = field(repr=False)
    has_headroom: bool = True
    labelled: frozenset[str] = frozenset()

    @property
    def ranked(self) -> tuple[str, ...]:
        """The methods without the references."""
        return tuple(name for name in self.methods if name not in self.references)

    @property
    def columns(self) -> tuple[ScoreColumn, ...]:
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

    @property
    def has_results(self) -> bool:
        """Whether a run has a score."""
        return any(any(merits.by_seed.values()) for merits in self.merits.values())

    def is_small(self, column: ScoreColumn) -> bool:
        """Whether a column's tests are too small to show a difference."""
        return self.small.issuperset(self.averaged if column is None else (column,))

    def counts(self, method: str, column: ScoreColumn, seeds: Iterable[int] | None = None) -> Counter[str]:
        """Counts seeds by status, all if not given; for the mean over targets, by the worst status of a seed's runs."""
        targets = self.averaged if column is None else (column,)
        runs = [self.statuses.get((method, target), {}) for target in targets]
        counted = self.seeds if seeds is None else seeds
        counts: Counter[str] = Counter()
        for seed in counted:
            statuses = [by_seed.get(seed, "missing") for by_seed in runs]
            counts[min(statuses, key=_SEVERITY.__getitem__)] += 1
        return counts


def score_tables(runs: pd.DataFrame) -> Iterator[ScoreTable]:
    """The experiments of a frame of runs, in the plan's order, with the selected candidates."""
    chosen = select(runs)
    selection = results_of(chosen).selection
    gaps = {} if selection is None else selection.candidates.gaps
    for experiment, rows in experiments(chosen[_COLUMNS]):
        yield _score_table(experiment, rows, gaps.get(experiment.name))


def _score_table(experiment: Experiment, rows: pd.DataFrame, gap: Mapping[int, float] | None) -> ScoreTable:
    methods = _in_order(rows["method"], [method.name for method in experiment.methods])
    targets = _in_order(rows["target"], experiment.targets)
    seeds = _in_order(rows["seed"], experiment.seeds)
    small = frozenset(small_tests(rows))
    averaged = averaged_targets(targets, small)
    statuses: dict[tuple[str, str], dict[int, str]] = {}
    for method, target, seed, status in _values(rows, "method", "target", "seed", "status"):
        statuses.setdefault((method, target), {})[seed] = status
    references = frozenset(rows.loc[rows["reference"].astype(bool), "method"].astype(object))
    merits = _all_merits(experiment, rows, methods, targets, averaged, seeds)
    overlap = _overlaps(rows, targets, averaged)
    return ScoreTable(
        experiment=experiment,
        methods=methods,
        references=references,
        targets=targets,
        averaged=averaged,
        small=small,
        seeds=seeds,
        statuses=statuses,
        merits=merits,
        overlap=overlap,
        has_headroom=_has_headroom(experiment, merits[None], overlap[None], gap),
        labelled=references.intersection(labelled_methods(rows)),
    )


def _all_merits(
    experiment: Experiment,
    rows: pd.DataFrame,
    methods: Sequence[str],
    targets: Sequence[str],
    averaged: Sequence[str],
    seeds: Sequence[int],
) -> dict[ScoreColumn, SeedScores]:
    """The merits at each target, and their mean over the averaged targets; diverged runs count at chance."""
    score = rows["score"].where((rows["status"] == "ok").to_numpy()).fillna(at_chance(rows))
    scored = rows.assign(score=score)[score.notna()]
    by_target: dict[str, dict[str, dict[int, float]]] = {}
    for target in targets:
        by_target[target] = {method: {} for method in methods}
    for target, method, seed, merit in _values(scored, "target", "method", "seed", "score"):
        by_target[target][method][seed] = experiment.measure.sign * merit
    merits: dict[ScoreColumn, SeedScores] = {}
    for target in targets:
        merits[target] = _merits(by_target[target], seeds, experiment)
    means = {name: mean_by_seed([merits[target].by_seed[name] for target in averaged]) for name in methods}
    merits[None] = SeedScores(means, min(merits[target].decimals for target in averaged))
    return merits


def _overlaps(rows: pd.DataFrame, targets: Sequence[str], averaged: Sequence[str]) -> dict[ScoreColumn, float]:
    """The ratio of test to training examples at each target, and its mean over the averaged ones."""
    ok = rows[(rows["status"] == "ok").to_numpy() & rows["score"].notna().to_numpy()]
    ratios, at = (ok["n_test"] / ok["n_train"]).astype(float), ok["target"].astype(object)
    overlap: dict[ScoreColumn, float] = {}
    for target in targets:
        overlap[target] = _mean_of_all(ratios[at == target])
    overlap[None] = _mean_of_all(ratios[at.isin(averaged)])
    return overlap


def _has_headroom(experiment: Experiment, means: SeedScores, overlap: float, gap: Mapping[int, float] | None) -> bool:
    """Whether the reference that the suite names is shown to gain, or cannot be tested; True if it names none."""
    best, base = experiment.headroom, experiment.baseline
    if best is None:
        return True
    if gap is None and base is not None and {best, base} <= means.by_seed.keys():
        gains = means.by_seed[base]
        gap = {seed: merit - gains[seed] for seed, merit in means.by_seed[best].items() if seed in gains}
    return gap is None or is_shown([*gap.values()], experiment.alpha, overlap, means.decimals)


def labelled_methods(runs: pd.DataFrame) -> list[str]:
    """The methods whose training saw labels of the target."""
    return [*runs.loc[runs["target_labels"].fillna(value=False).to_numpy(dtype=bool), "method"].unique()]


def tells_headroom(named: str | None, recipes: Mapping[str, str], gains: Mapping[str, float]) -> str | None:
    """The reference that tells what labels of the target would gain; None without any.

    It is the one that the suite names; else the one with the largest gain of those that learn from the sources, too,
    before those that learn from the target alone. `gains` and `recipes` are those of references that see such labels.
    """
    if named in gains:
        return named
    return max(gains, key=lambda name: (not learns_alone(recipes[name]), gains[name]), default=None)


def learns_alone(recipe: str) -> bool:
    """Whether a method of this recipe learns from the target alone."""
    return _TARGET_ONLY.match(recipe) is not None


def at_chance(runs: pd.DataFrame) -> pd.Series[float]:
    """The scores of diverged runs, by their index: those of the reference `chance` at their target and seed, if known.

    Without a score a method would gain by the runs that it loses.
    """
    is_diverged = (runs["status"] == "diverged").to_numpy(dtype=bool)
    if not is_diverged.any():
        return pd.Series([], runs.index[is_diverged], dtype=float)
    chance = runs[(runs["method"] == CHANCE_REFERENCE).to_numpy() & runs["reference"].to_numpy(bool)]
    diverged, place = runs[is_diverged], ("experiment", "target", "seed")
    known = {tuple(at): score for *at, score in _values(chance, *place, "score")}
    return pd.Series([known.get(at) for at in _values(diverged, *place)], diverged.index, dtype=float).dropna()


def is_shown(gains: Sequence[float], alpha: float, overlap: float, decimals: int) -> bool:
    """Whether a reference gains, by seed: the exact test of its gains says so or, of too few for that, their interval.

    A reference is in no family of comparisons, so nothing is corrected.
    """
    if 2 * 0.5 ** len(gains) > alpha:
        low, _ = summarize(gains).allowing(overlap).interval(alpha)
        return low > 0
    tests = signed_rank_tests(np.round(np.asarray(gains, float), decimals))
    return tests["two-sided"].p <= alpha and tests["greater"].p < tests["less"].p


def _mean_of_all(values: pd.Series[float]) -> float:
    return float(values.mean()) if len(values) and values.notna().all() else 0.0


def _merits(by_method: Mapping[str, Mapping[int, float]], seeds: Sequence[int], experiment: Experiment) -> SeedScores:
    by_seed = {name: {seed: merits[seed] for seed in seeds if seed in merits} for name, merits in by_method.items()}
    sizes = [abs(merit) for merits in by_seed.values() for merit in merits.values()]
    return SeedScores(by_seed, _DECIMALS if experiment.measure.percent else _decimals(sizes))


def _decimals(sizes: Sequence[float]) -> int:
    middle = median(sizes) if sizes else 0.0
    return min(_DECIMALS + 2 - math.ceil(math.log10(middle)), _MOST_DECIMALS) if middle > 0 else _DECIMALS


def mean_by_seed(merits: Sequence[Mapping[int, float]]) -> dict[int, float]:
    """The mean over several merits by seed, for the seeds that all have, in the order of the first."""
    seeds = [seed for seed in merits[0] if all(seed in by_seed for by_seed in merits)] if merits else []
    return {seed: mean_of(by_seed[seed] for by_seed in merits) for seed in seeds}


def _in_order(values: pd.Series[Any], planned: Sequence[Any]) -> tuple[Any, ...]:
    """The values that occur, in the plan's order; unplanned values come last."""
    there, known = dict.fromkeys(values.astype(object)), set(planned)
    return (*(value for value in planned if value in there), *(value for value in there if value not in known))


def _values(rows: pd.DataFrame, *columns: str) -> Iterator[tuple[Any, ...]]:
    return zip(*(rows[name].astype(object) for name in columns), strict=True)
