"""The scores of an experiment: one array of methods, targets and seeds, from which everything else is made."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from msda_bench.results.estimates import Summary, mean_of, summarize, tied
from msda_bench.results.frame import PROBLEMS, experiments
from msda_bench.results.model_selection import select
from msda_bench.results.runs import are_ok, results_of
from msda_bench.results.signed_rank import signed_rank_tests
from msda_bench.results.small import averaged_targets, small_tests
from msda_bench.suite.plan import CHANCE_REFERENCE, Experiment

ScoreColumn: TypeAlias = str | None
"""A target, or None for the mean over targets."""
Scores: TypeAlias = NDArray[np.float64]
"""Scores by seed, NaN where there is none."""
STATUSES = (*PROBLEMS, "ok")
"""The statuses of runs, the worst first."""

_MISSING = STATUSES.index("missing")
_OK = STATUSES.index("ok")
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
"""All that a table is made from: frames of runs are wide, and each part of them a copy."""
_TARGET_ONLY = re.compile(r"target_only\b")
"""The recipe of a reference that does not learn from the sources begins so."""


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """An experiment's runs on a full grid; runs without a row are missing.

    Attributes:
        experiment: the experiment of the plan.
        methods, targets, seeds: those that have rows, in the plan's order.
        references: the methods that are shown, but not ranked or tested.
        small: the targets with too few test examples to show a difference.
        averaged: the targets of the mean: those that are not small, or all if all are small.
        merits: (methods, targets + 1, seeds) scores, negated where less is better, NaN where a run has none; the last
            column is the mean over the averaged targets, at the seeds that all of these have.
        statuses: (methods, targets + 1, seeds) places in `STATUSES`; in the last column that of a seed's worst run.
        decimals: (targets + 1) the decimals that count in a difference of each column, so that differences that are
            equal as fractions tie: 9 for percents, about eleven significant digits of other metrics. That is far
            coarser than the error of a float, and far finer than any real difference.
        overlaps: (targets + 1) the number of the target's test examples over that of its training examples, a mean
            over the runs; 0 where the records do not have both.
        has_headroom: False where the suite names a reference that is not shown to gain over the baseline.
        labelled: the references that learn from labels of the target.
    """

    experiment: Experiment
    methods: tuple[str, ...]
    references: frozenset[str]
    targets: tuple[str, ...]
    averaged: tuple[str, ...]
    small: frozenset[str]
    seeds: tuple[int, ...]
    merits: NDArray[np.float64] = field(repr=False)
    statuses: NDArray[np.int8] = field(repr=False)
    decimals: tuple[int, ...] = field(repr=False)
    overlaps: tuple[float, ...] = field(repr=False)
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
        return not np.isnan(self.merits).all()

    def placed(self, rows: pd.DataFrame, column: str) -> NDArray[np.float64]:
        """A column of the experiment's runs as (methods, targets, seeds), NaN for runs that are not among the rows."""
        values = np.full(self.is_ok.shape, np.nan)
        at = _places_of(rows, self.methods, self.targets, self.seeds)
        values[at] = rows[column].to_numpy(float, na_value=np.nan)
        return values

    @cached_property
    def is_ok(self) -> NDArray[np.bool_]:
        """Whether each run is ok: (methods, targets, seeds)."""
        is_ok: NDArray[np.bool_] = self.statuses[:, :-1] == _OK
        return is_ok

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """The number of seeds with each status: (methods, targets + 1, statuses)."""
        has_status = self.statuses[..., np.newaxis] == np.arange(len(STATUSES))
        counts: NDArray[np.int64] = has_status.sum(axis=2)
        return counts

    @cached_property
    def n_scored(self) -> NDArray[np.int64]:
        """The number of seeds with a score whose runs are all ok: (methods, targets + 1)."""
        is_scored = (self.statuses == _OK) & ~np.isnan(self.merits)
        counts: NDArray[np.int64] = is_scored.sum(axis=2)
        return counts

    @cached_property
    def _places(self) -> tuple[dict[str, int], dict[ScoreColumn, int]]:
        """The places of methods and of columns."""
        methods = {name: place for place, name in enumerate(self.methods)}
        columns = {column: place for place, column in enumerate(self.columns)}
        return methods, columns

    def place(self, column: ScoreColumn) -> int:
        """The place of a column."""
        return self._places[1][column]

    def is_small(self, column: ScoreColumn) -> bool:
        """Whether a column's tests are too small to show a difference."""
        return self.small.issuperset(self.averaged if column is None else (column,))

    def overlap(self, column: ScoreColumn) -> float:
        """The ratio of test to training examples in a column."""
        return self.overlaps[self.place(column)]

    def of(self, method: str, column: ScoreColumn, seeds: Sequence[int] | None = None) -> Scores:
        """The merits of a method in a column by seed: at the table's own seeds, or at these."""
        methods, columns = self._places
        own: Scores = self.merits[methods[method], columns[column]]
        if seeds is None or tuple(seeds) == self.seeds:
            return own
        by_seed = dict(zip(self.seeds, own.tolist(), strict=True))
        return np.array([by_seed.get(seed, math.nan) for seed in seeds], float)

    def at(self, method: str, targets: Sequence[str]) -> NDArray[np.float64]:
        """The merits of a method at some targets: (targets, seeds)."""
        methods, columns = self._places
        merits: NDArray[np.float64] = self.merits[methods[method], [columns[target] for target in targets]]
        return merits

    def known(self, method: str, column: ScoreColumn) -> list[float]:
        """The merits of a method in a column, at the seeds that have one."""
        return known(self.of(method, column))

    def means(self, names: Iterable[str], column: ScoreColumn) -> dict[str, float]:
        """The mean merit of each of these methods; methods without merits are skipped."""
        means = {}
        for name in names:
            merits = self.known(name, column)
            if merits:
                means[name] = tied(mean_of(merits))
        return means

    def differences(self, first: str, second: str, column: ScoreColumn) -> list[float]:
        """The first method's merit minus the second's, at each seed that both have."""
        return known(self.of(first, column) - self.of(second, column))

    def gain(self, first: str, second: str, column: ScoreColumn) -> Summary:
        """The mean of these differences, with its standard error."""
        summary = summarize(self.differences(first, second, column))
        if not summary.n:
            return summary
        return summary._replace(mean=round(summary.mean, self.decimals[self.place(column)]))


def known(scores: Scores) -> list[float]:
    """The scores that are not NaN."""
    found: list[float] = scores[~np.isnan(scores)].tolist()
    return found


def paired(first: Scores, second: Scores) -> tuple[list[float], list[float]]:
    """Two methods' scores at the seeds that both have."""
    have_both = ~(np.isnan(first) | np.isnan(second))
    return first[have_both].tolist(), second[have_both].tolist()


def mean_by_seed(scores: NDArray[np.float64]) -> Scores:
    """The mean over targets at each seed, from (targets, seeds); NaN where a target has no score."""
    return np.array([mean_of(of_seed) for of_seed in scores.T.tolist()], float)


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
    at = _places_of(rows, methods, targets, seeds)
    small = frozenset(small_tests(rows))
    averaged = averaged_targets(targets, small)
    of_mean = [targets.index(target) for target in averaged]
    merits = np.full((len(methods), len(targets) + 1, len(seeds)), np.nan)
    merits[at] = experiment.measure.sign * _scores_or_chance(rows)
    for of_method in merits:
        of_method[-1] = mean_by_seed(of_method[of_mean])
    statuses = np.full(merits.shape, _MISSING, np.int8)
    statuses[at] = _codes(rows["status"], STATUSES)
    statuses[:, -1] = statuses[:, of_mean].min(axis=1)
    decimals = [_decimals_of(experiment, merits[:, place]) for place in range(len(targets))]
    decimals.append(min(decimals[place] for place in of_mean))
    references = frozenset(rows.loc[rows["reference"].astype(bool), "method"].astype(object))
    table = ScoreTable(
        experiment=experiment,
        methods=methods,
        references=references,
        targets=targets,
        averaged=averaged,
        small=small,
        seeds=seeds,
        merits=merits,
        statuses=statuses,
        decimals=tuple(decimals),
        overlaps=tuple(_overlaps(rows, targets, averaged)),
        labelled=references.intersection(labelled_methods(rows)),
    )
    return replace(table, has_headroom=_has_headroom(table, gap))


def _in_order(values: pd.Series[Any], planned: Sequence[Any]) -> tuple[Any, ...]:
    """The values that occur, in the plan's order; unplanned values come last."""
    there = dict.fromkeys(values.astype(object))
    first = [value for value in planned if value in there]
    return tuple(dict.fromkeys([*first, *there]))


def _places_of(
    rows: pd.DataFrame, methods: Sequence[str], targets: Sequence[str], seeds: Sequence[int]
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """The place of each run in an array of methods, targets and seeds."""
    return _codes(rows["method"], methods), _codes(rows["target"], targets), _codes(rows["seed"], seeds)


def _codes(values: pd.Series[Any], names: Sequence[Any]) -> NDArray[np.intp]:
    """The place of each value among the names."""
    places: NDArray[np.intp] = pd.Index(names).get_indexer(pd.Index(values.astype(object)))
    return places


def _scores_or_chance(rows: pd.DataFrame) -> Scores:
    """The scores of runs that are ok, and of those that diverged at chance; NaN for others."""
    return rows["score"].where(are_ok(rows)).fillna(at_chance(rows)).to_numpy(float)


def _decimals_of(experiment: Experiment, merits: NDArray[np.float64]) -> int:
    """The decimals that count in a difference of these merits."""
    sizes = np.abs(merits[~np.isnan(merits)])
    if experiment.measure.percent or not len(sizes):
        return _DECIMALS
    middle = float(np.median(sizes))
    if middle <= 0:
        return _DECIMALS
    return min(_DECIMALS + 2 - math.ceil(math.log10(middle)), _MOST_DECIMALS)


def _overlaps(rows: pd.DataFrame, targets: Sequence[str], averaged: Sequence[str]) -> Iterator[float]:
    """The ratio of test to training examples at each target, and its mean over the averaged ones."""
    scored = rows[are_ok(rows) & rows["score"].notna()]
    ratios = (scored["n_test"] / scored["n_train"]).astype(float)
    for target in targets:
        yield _mean_of_all(ratios[scored["target"] == target])
    yield _mean_of_all(ratios[scored["target"].isin(averaged)])


def _mean_of_all(values: pd.Series[float]) -> float:
    """The mean; 0 without values, or where one is not known."""
    if values.empty or values.isna().any():
        return 0.0
    return float(values.to_numpy().mean())


def _has_headroom(table: ScoreTable, gap: Mapping[int, float] | None) -> bool:
    """Whether the reference that the suite names is shown to gain, or cannot be tested; True if it names none."""
    best = table.experiment.headroom
    base = table.experiment.baseline
    if best is None:
        return True
    if gap is not None:
        gains = [*gap.values()]
    elif base is not None and {best, base} <= {*table.methods}:
        gains = table.differences(best, base, None)
    else:
        return True
    return is_shown(gains, table.experiment.alpha, table.overlap(None), table.decimals[-1])


def labelled_methods(runs: pd.DataFrame) -> list[str]:
    """The methods whose training saw labels of the target."""
    saw_labels = runs["target_labels"].to_numpy(bool, na_value=False)
    return [*runs.loc[saw_labels, "method"].unique()]


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
    is_chance = (runs["method"] == CHANCE_REFERENCE).to_numpy() & runs["reference"].to_numpy(bool)
    chance = runs[is_chance]
    diverged = runs[is_diverged]
    known_scores = dict(zip(_run_places(chance), chance["score"].tolist(), strict=True))
    scores = [known_scores.get(place) for place in _run_places(diverged)]
    return pd.Series(scores, diverged.index, dtype=float).dropna()


def _run_places(runs: pd.DataFrame) -> Iterator[tuple[Any, ...]]:
    """The experiment, target and seed of each run."""
    return iter(runs[["experiment", "target", "seed"]].itertuples(index=False, name=None))


def is_shown(gains: Sequence[float], alpha: float, overlap: float, decimals: int) -> bool:
    """Whether a reference gains, by seed: the exact test of its gains says so or, of too few for that, their interval.

    A reference is in no family of comparisons, so nothing is corrected.
    """
    if 2 * 0.5 ** len(gains) > alpha:
        low, _ = summarize(gains).allowing(overlap).interval(alpha)
        return low > 0
    tests = signed_rank_tests(np.round(np.asarray(gains, float), decimals))
    return tests["two-sided"].p <= alpha and tests["greater"].p < tests["less"].p
