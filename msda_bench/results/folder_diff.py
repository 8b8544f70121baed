"""Compares two result folders: their paired runs, the differences in scores, and the differences in provenance."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import pandas as pd

from msda_bench.errors import BenchError
from msda_bench.results.decision import Row, decided, measured
from msda_bench.results.estimates import summarize
from msda_bench.results.frame import AVERAGE, own_rows
from msda_bench.results.notes import note_lines, problem_lines
from msda_bench.results.run_differences import changes, equal_results
from msda_bench.results.scores import Column, Grid, grids, paired
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

_Count: TypeAlias = Literal["planned_by_both", "ok_in_both", "same_cell", "equal_result"]


@dataclass(frozen=True)
class ExperimentDiff:
    """An experiment of folder A and the matching one of folder B.

    `only` has the `methods`, `targets` and `seeds` that only one of them has. `rows` has one row per target (`average`
    last) and pair of methods: the outcome of B against A, and differences that are positive if B is better. `changes`
    are differences in the records of paired runs: `what, a, b, runs`. `runs` counts them, each a part of the one
    before: planned by both folders, ok in both, of the same cell, and with an equal result to the last bit, curves
    included.
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
        return sum(pair.runs[what] for pair in self.experiments)

    @property
    def rows(self) -> pd.DataFrame:
        """The rows of all experiments, with their names in `experiment_a` and `experiment_b`."""
        named = [pair.rows.assign(experiment_a=pair.a.name, experiment_b=pair.b.name) for pair in self.experiments]
        filled = [rows for rows in named if len(rows)] or [pd.DataFrame()]
        return pd.concat(filled, ignore_index=True).reindex(columns=["experiment_a", "experiment_b", *COLUMNS])


def diff_folders(a: pd.DataFrame, b: pd.DataFrame, match: Mapping[str, str] | None = None) -> FolderDiff:
    """Pairs the runs of two folders by experiment, target, method and seed, and compares them.

    Experiments pair by name, dataset and task. If exactly one unpaired experiment on a dataset is left in each folder,
    these two pair as well. `match` gives names in B by names in A, for methods or experiments that have different
    names; if it names experiments, only those are compared.

    Raises:
        BenchError: a method or experiment to match is missing, or two paired experiments use different metrics.
        StoreError: a record cannot be read.
    """
    a, b = select(a), select(b)
    tables_a, tables_b = a.attrs["plan"].experiments, b.attrs["plan"].experiments
    pairs, methods = _matched(tables_a, tables_b, match or {})
    for ours, theirs in pairs:
        if ours.measure != theirs.measure:
            metrics = f"{ours.measure.name} in A and {theirs.measure.name} in B"
            raise BenchError(f"{ours.name}: uses {metrics}; name one metric for both with --metric")
    return FolderDiff(
        a,
        b,
        tuple(_diff(ours, theirs, own_rows(ours, a), own_rows(theirs, b), methods) for ours, theirs in pairs),
        only_a=tuple(table for table in tables_a if table not in [ours for ours, _ in pairs]),
        only_b=tuple(table for table in tables_b if table not in [theirs for _, theirs in pairs]),
    )


def _matched(
    a: Sequence[Experiment], b: Sequence[Experiment], match: Mapping[str, str]
) -> tuple[list[tuple[Experiment, Experiment]], dict[str, str]]:
    """The experiments that pair, and the part of `match` that names methods."""
    named = [(ours, theirs) for ours in a for theirs in b if match.get(ours.name) == theirs.name]
    methods = {name: partner for name, partner in match.items() if name not in [ours.name for ours, _ in named]}
    for side, tables, names in (("A", a, methods.keys()), ("B", b, methods.values())):
        known = [*_methods(tables), *(table.name for table in tables)]
        what = f"--match: {side} has no method or experiment"
        if absent := [f"{what} {shown(name)}{hint(name, known)}" for name in names if name not in known]:
            raise BenchError(*absent)
    for name, partner in methods.items():
        if name not in _methods(a) or partner not in _methods(b):
            raise BenchError(
                f"--match: {shown(name)} and {shown(partner)} are a method and an experiment; name two alike"
            )
    return named or _alike(a, b), methods


def _methods(tables: Sequence[Experiment]) -> list[str]:
    return list(dict.fromkeys(method.name for table in tables for method in table.methods))


def _alike(a: Sequence[Experiment], b: Sequence[Experiment]) -> list[tuple[Experiment, Experiment]]:
    """The experiments of one name and subject; then those that are alone with their subject among the others."""

    def subject(table: Experiment) -> tuple[str, str]:
        return table.dataset, table.task

    partners = {
        ours.name: theirs
        for ours in a
        for theirs in b
        if (ours.name, *subject(ours)) == (theirs.name, *subject(theirs))
    }
    rest_a = [table for table in a if table.name not in partners]
    rest_b = [table for table in b if table not in partners.values()]
    for ours in rest_a:
        same = [theirs for theirs in rest_b if subject(theirs) == subject(ours)]
        if len(same) == [*map(subject, rest_a)].count(subject(ours)) == 1:
            partners[ours.name] = same[0]
    return [(ours, partners[ours.name]) for ours in a if ours.name in partners]


def _diff(
    ours: Experiment, theirs: Experiment, a: pd.DataFrame, b: pd.DataFrame, match: Mapping[str, str]
) -> ExperimentDiff:
    known = {method.name for method in theirs.methods}
    methods = {
        method.name: partner for method in ours.methods if (partner := match.get(method.name, method.name)) in known
    }
    runs, partners = _paired_runs(a, b, methods)
    ok = ((runs["status"] == "ok") & (partners["status"] == "ok")).to_numpy()
    same_cell = ok & (runs["key"] == partners["key"]).to_numpy()
    equal = equal_results(runs[same_cell], partners[same_cell])
    return ExperimentDiff(
        a=ours,
        b=theirs,
        only={"a": _unpaired(ours, theirs, methods), "b": _unpaired(theirs, ours, methods.values())},
        rows=_compared(a, b, methods),
        changes=changes(runs, partners),
        notes={"a": note_lines(a).get(ours.name, []), "b": note_lines(b).get(theirs.name, [])},
        problems={"a": list(problem_lines(a)), "b": list(problem_lines(b))},
        runs={
            "planned_by_both": len(runs),
            "ok_in_both": int(ok.sum()),
            "same_cell": int(same_cell.sum()),
            "equal_result": int(runs["key"][same_cell].isin(equal).sum()),
        },
    )


def _paired_runs(a: pd.DataFrame, b: pd.DataFrame, methods: Mapping[str, str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The runs that both folders plan, in A's order and with a common index."""
    places = a[["method", "target", "seed"]].astype({"method": object, "target": object}).assign(a=a.index)
    places["method"] = places["method"].map(methods).astype(object)
    partners = b[["method", "target", "seed"]].astype({"method": object, "target": object}).assign(b=b.index)
    both = places.merge(partners, on=["method", "target", "seed"])
    return a.loc[both["a"]].reset_index(drop=True), b.loc[both["b"]].reset_index(drop=True)


def _unpaired(table: Experiment, other: Experiment, paired_methods: Collection[str]) -> dict[str, list[Any]]:
    return {
        "methods": [method.name for method in table.methods if method.name not in paired_methods],
        "targets": [target for target in table.targets if target not in other.targets],
        "seeds": [seed for seed in table.seeds if seed not in other.seeds],
    }


def _compared(a: pd.DataFrame, b: pd.DataFrame, methods: Mapping[str, str]) -> pd.DataFrame:
    """Compares the methods over common seeds, at each target and averaged over the common targets."""
    common = set(a["target"]) & set(b["target"])
    both = zip(*(grids(runs[runs["target"].isin(common)]) for runs in (a, b)), strict=True)
    rows = [
        row
        for ours, theirs in both  # at most one experiment each
        for column in ours.columns
        for row in decided([_pair(ours, theirs, names, column) for names in methods.items()], family="methods")
    ]
    counts = dict.fromkeys(("n_family", "n_planned", "n_paired", "n_zero", "wins", "ties", "losses"), "Int64")
    return pd.DataFrame(rows, columns=COLUMNS).astype(counts)


def _pair(ours: Grid, theirs: Grid, names: tuple[str, str], column: Column) -> Row:
    """Compares a method of B with one of A."""
    merits_a, merits_b = ours.merits[column], theirs.merits[column]
    values = paired(merits_a.by_seed[names[0]], merits_b.by_seed[names[1]])
    row = measured(
        "target" if column else "average",
        AVERAGE if column is None else column,
        (names[1], names[0]),
        [second - first for first, second in zip(*values, strict=True)],
        len({*ours.seeds} & {*theirs.seeds}),
        alpha=ours.experiment.alpha,
        decimals=min(merits_a.decimals, merits_b.decimals),
    )
    for side, name, merits in zip("ab", names, values, strict=True):
        _, mean, error = summarize(merits)
        row |= {f"method_{side}": name, f"mean_{side}": abs(mean), f"standard_error_{side}": error}
    return row
