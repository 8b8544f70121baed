"""Compares two result folders: their paired runs, the differences in scores, and the differences in provenance."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import pandas as pd

from msda_bench.errors import BenchError
from msda_bench.results.decision import Row, decided, measured
from msda_bench.results.estimates import summarize
from msda_bench.results.frame import AVERAGE, own_rows
from msda_bench.results.notes import note_lines, problem_lines
from msda_bench.results.run_differences import changes, equal_results
from msda_bench.results.scores import Column, Grid, grids
from msda_bench.results.select import select
from msda_bench.suite.mistakes import hint, shown
from msda_bench.suite.plan import Experiment

COLUMNS = (
    *("target", "method_a", "method_b", "outcome", "reason", "n_family", "n_planned", "n_paired", "n_zero"),
    *("mean_a", "standard_error_a", "mean_b", "standard_error_b", "mean_difference", "standard_deviation"),
    *("median_difference", "hodges_lehmann", "hl_low", "hl_high", "wins", "ties", "losses"),
    *("statistic", "p_two_sided", "p_holm", "attainable_p", "detectable"),
)
"""The columns of `ExperimentDiff.rows`, explained in docs/results.md."""

_Identity: TypeAlias = Callable[[Experiment], tuple[str, ...]]
_IDENTITIES: tuple[_Identity, ...] = (
    operator.attrgetter("name", "dataset", "task"),
    operator.attrgetter("dataset", "task"),
)
_Count: TypeAlias = Literal["planned_by_both", "ok_in_both", "same_cell", "equal_result"]


@dataclass(frozen=True)
class ExperimentDiff:
    """An experiment of folder A and the matching one of folder B.

    Attributes:
        a: the experiment of A.
        b: the experiment of B.
        only: the `methods`, `targets` and `seeds` that only `a` or only `b` has.
        rows: one row per target (`average` last) and pair of methods: the outcome of B against A, and differences that
            are positive if B is better.
        changes: `what, a, b, runs`: differences in the records of paired runs.
        notes: sentences on the runs of `a` and of `b`.
        problems: sentences on the runs that are not ok.
        runs: counts of runs, each a part of the one before: planned by both folders, ok in both, of the same cell, and
            with an equal result to the last bit, curves included.
    """

    a: Experiment
    b: Experiment
    only: Mapping[str, Mapping[str, Sequence[Any]]]
    rows: pd.DataFrame
    changes: pd.DataFrame
    notes: Mapping[str, list[str]]
    problems: Mapping[str, list[str]]
    runs: Mapping[_Count, int]


@dataclass(frozen=True)
class FolderDiff:
    """The runs of two folders, the experiments that match, in A's order, and those that only one folder has."""

    a: pd.DataFrame
    b: pd.DataFrame
    experiments: tuple[ExperimentDiff, ...]
    only_a: tuple[Experiment, ...]
    only_b: tuple[Experiment, ...]

    def count(self, what: _Count) -> int:
        """The sum of one of the counts in `ExperimentDiff.runs` over all experiments."""
        return sum(one.runs[what] for one in self.experiments)

    @property
    def rows(self) -> pd.DataFrame:
        """The rows of all experiments, with their names in `experiment_a` and `experiment_b`."""
        named = [one.rows.assign(experiment_a=one.a.name, experiment_b=one.b.name) for one in self.experiments]
        every = [rows for rows in named if len(rows)] or [pd.DataFrame()]
        return pd.concat(every, ignore_index=True).reindex(columns=["experiment_a", "experiment_b", *COLUMNS])


def diff_folders(a: pd.DataFrame, b: pd.DataFrame, match: Mapping[str, str] | None = None) -> FolderDiff:
    """Pairs the runs of two folders by experiment, target, method and seed, and compares them.

    Experiments pair by name, dataset and task. If exactly one unpaired experiment on a dataset is left in each folder,
    these two pair as well. If `match` names experiments, only those are compared.

    Args:
        a: runs of the first folder.
        b: runs of the second folder; differences are positive if it is better.
        match: names in B by names in A, for methods or experiments that have different names in the two folders.

    Raises:
        BenchError: a method or experiment to match is missing, or two paired experiments use different metrics.
        StoreError: a record cannot be read.
    """
    match = match or {}
    a, b = select(a), select(b)
    ours, theirs = a.attrs["plan"].experiments, b.attrs["plan"].experiments
    named = {one.name: other for one in ours for other in theirs if match.get(one.name) == other.name}
    match = {name: other for name, other in match.items() if name not in named}
    for side, experiments, names in (("A", ours, match), ("B", theirs, match.values())):
        known = list(dict.fromkeys(method.name for experiment in experiments for method in experiment.methods))
        if absent := [name for name in names if name not in known]:
            what = "no method or experiment"
            raise BenchError(*(f"--match: {side} has {what} {shown(name)}{hint(name, known)}" for name in absent))
    couples = [(one, named[one.name]) for one in ours if one.name in named] or _couples(ours, theirs)
    for one, other in couples:
        if one.measure != other.measure:
            shown_by = f"{one.measure.name} in A and {other.measure.name} in B"
            raise BenchError(f"{one.name}: uses {shown_by}; name one metric for both with --metric")
    return FolderDiff(
        a,
        b,
        tuple(_diff(one, other, own_rows(one, a), own_rows(other, b), match) for one, other in couples),
        tuple(experiment for experiment in ours if experiment not in [one for one, _ in couples]),
        tuple(experiment for experiment in theirs if experiment not in [other for _, other in couples]),
    )


def _couples(a: Sequence[Experiment], b: Sequence[Experiment]) -> list[tuple[Experiment, Experiment]]:
    """Matching experiments of A and B, in A's order."""
    found: dict[str, Experiment] = {}
    for of in _IDENTITIES:
        left = [one for one in a if one.name not in found]
        right = [other for other in b if other not in found.values()]
        counts = Counter(map(of, left)), Counter(map(of, right))
        for one in left:
            if counts[0][of(one)] == counts[1][of(one)] == 1:
                found[one.name] = next(other for other in right if of(other) == of(one))
    return [(one, found[one.name]) for one in a if one.name in found]


def _diff(
    one: Experiment, other: Experiment, a: pd.DataFrame, b: pd.DataFrame, match: Mapping[str, str]
) -> ExperimentDiff:
    names = {method.name: match.get(method.name, method.name) for method in one.methods}
    theirs = {method.name for method in other.methods}
    methods = {name: partner for name, partner in names.items() if partner in theirs}
    ours, partners = _paired_runs(a, b, methods)
    ok = ((ours["status"] == "ok") & (partners["status"] == "ok")).to_numpy()
    same_cell = ok & (ours["key"] == partners["key"]).to_numpy()
    equal = equal_results(ours[same_cell], partners[same_cell])
    return ExperimentDiff(
        a=one,
        b=other,
        only={"a": _unpaired(one, other, methods), "b": _unpaired(other, one, methods.values())},
        rows=_compare(a, b, methods),
        changes=changes(ours, partners),
        notes={"a": note_lines(a).get(one.name, []), "b": note_lines(b).get(other.name, [])},
        problems={"a": list(problem_lines(a)), "b": list(problem_lines(b))},
        runs={
            "planned_by_both": len(ours),
            "ok_in_both": int(ok.sum()),
            "same_cell": int(same_cell.sum()),
            "equal_result": int(ours["key"][same_cell].isin(equal).sum()),
        },
    )


def _paired_runs(a: pd.DataFrame, b: pd.DataFrame, methods: Mapping[str, str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The runs that both folders plan, in A's order and with a common index."""
    places = a[["method", "target", "seed"]].astype({"method": object, "target": object}).assign(a=a.index)
    places["method"] = places["method"].map(methods).astype(object)
    partners = b[["method", "target", "seed"]].astype({"method": object, "target": object}).assign(b=b.index)
    both = places.merge(partners, on=["method", "target", "seed"])
    return a.loc[both["a"]].reset_index(drop=True), b.loc[both["b"]].reset_index(drop=True)


def _unpaired(one: Experiment, other: Experiment, paired: Collection[str]) -> dict[str, list[Any]]:
    return {
        "methods": [method.name for method in one.methods if method.name not in paired],
        "targets": [target for target in one.targets if target not in other.targets],
        "seeds": [seed for seed in one.seeds if seed not in other.seeds],
    }


def _compare(a: pd.DataFrame, b: pd.DataFrame, methods: Mapping[str, str]) -> pd.DataFrame:
    """Compares the methods over common seeds, at each target and averaged over the common targets."""
    common = set(a["target"]) & set(b["target"])
    found = zip(*(grids(runs[runs["target"].isin(common)]) for runs in (a, b)), strict=True)
    rows = [row for one, other in found for row in _compare_grids(one, other, methods)]
    counts = dict.fromkeys(("n_family", "n_planned", "n_paired", "n_zero", "wins", "ties", "losses"), "Int64")
    return pd.DataFrame(rows, columns=COLUMNS).astype(counts)


def _compare_grids(one: Grid, other: Grid, methods: Mapping[str, str]) -> Iterator[Row]:
    for column in one.columns:
        yield from decided([_compare_methods(one, other, pair, column) for pair in methods.items()], family="methods")


def _compare_methods(one: Grid, other: Grid, methods: tuple[str, str], column: Column) -> Row:
    ours, theirs = one.merits[column], other.merits[column]
    merits = ours.by_seed[methods[0]], theirs.by_seed[methods[1]]
    seeds = [seed for seed in merits[0] if seed in merits[1]]
    values = [[own[seed] for seed in seeds] for own in merits]
    planned = len(set(one.seeds) & set(other.seeds))
    row = measured(
        "target" if column else "average",
        AVERAGE if column is None else column,
        (methods[1], methods[0]),
        [second - first for first, second in zip(*values, strict=True)],
        planned,
        alpha=one.experiment.alpha,
        decimals=min(ours.decimals, theirs.decimals),
    )
    for side, name, own in zip("ab", methods, values, strict=True):
        found = summarize(own)
        row |= {f"method_{side}": name, f"mean_{side}": abs(found.mean), f"standard_error_{side}": found.standard_error}
    return row
