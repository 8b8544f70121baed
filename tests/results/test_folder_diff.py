"""The comparison of two folders, from lists of scores; tests/cli/test_compare_two.py tests the printed text."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import pandas as pd
import pytest

from msda_bench.results.folder_diff import diff_folders
from msda_bench.results.folder_diff_text import verdict
from msda_bench.results.frame import runs_frame
from msda_bench.results.signed_rank import signed_rank
from msda_bench.store.record import Outcome, Record
from msda_bench.suite.plan import Experiment, Method, Plan, PlannedCell

Run = float | str | tuple[int, int] | None
"""Correct of 200, a squared error, a status, (correct, of), or None for a missing run."""


def folder(runs: Mapping[str, Mapping[str, Sequence[Run]]], task: str = "classification") -> pd.DataFrame:
    """`folder({method: {target: [run of seed 0, run of seed 1, ...]}})`: the runs of a folder of one experiment."""
    targets = tuple(next(iter(runs.values())))
    seeds = tuple(range(len(next(iter(next(iter(runs.values())).values())))))
    methods = tuple(Method(name, name.startswith("ref"), "recipe", ()) for name in runs)
    cells, records = [], {}
    for name, target, seed in ((name, target, seed) for name in runs for target in targets for seed in seeds):
        run = runs[name][target][seed]
        key = hashlib.sha256(f"{name} {target} {seed}".encode()).hexdigest()
        cells.append(PlannedCell("e", name, target, seed, key))
        if run is not None:
            status = run if isinstance(run, str) else "ok"
            records[key] = Record(key, {}, status, None if isinstance(run, str) else _outcome(run))  # type: ignore[arg-type]
    return runs_frame(Plan("suite", (Experiment("e", "toy", task, targets, methods, seeds),), tuple(cells)), records)


def _outcome(run: float | tuple[int, int]) -> Outcome:
    if isinstance(run, float):
        return Outcome(1, sum_squared_error=run)
    correct, of = run if isinstance(run, tuple) else (run, 200)
    return Outcome(of, n_correct=correct)


def compared(a: pd.DataFrame, b: pd.DataFrame, **match: str) -> pd.DataFrame:
    """The rows by target and method of A."""
    (one,) = diff_folders(a, b, match).experiments
    return one.rows.set_index(["target", "method_a"])


def test_differences_are_b_minus_a_for_each_seed():
    a = folder({"m": {"x": [100, 102, 104, 106, 108, 110]}})
    b = folder({"m": {"x": [102, 106, 110, 114, 118, 122]}})
    rows = compared(a, b)
    row = rows.loc["x", "m"]
    assert (row.mean_a, row.mean_b, row.mean_difference, row.wins, row.outcome) == (52.5, 56.0, 3.5, 6, "better")
    assert (row.p_two_sided, row.p_holm) == (signed_rank(range(1, 7), "two-sided").p, 0.03125)
    pd.testing.assert_series_equal(rows.loc["average", "m"], row, check_names=False)


def test_less_error_is_better_and_means_are_errors():
    a, b = folder({"m": {"x": [2.0] * 6}}, "regression"), folder({"m": {"x": [1.0] * 6}}, "regression")
    row = compared(a, b).loc["x", "m"]
    assert (row.mean_a, row.mean_b, row.mean_difference) == (2.0, 1.0, 1.0)
    assert verdict(diff_folders(a, b)).outcome == "better"
    assert verdict(diff_folders(b, a)).outcome == "worse"


def test_test_sets_of_other_sizes_are_compared_exactly():
    """1/3 and 2/6 are equal, unlike differences of float percentages and means."""
    a = folder({"m": {"x": [(1, 3)] * 6, "y": [(1, 7)] * 6}})
    b = folder({"m": {"x": [(2, 6)] * 6, "y": [(3, 21)] * 6}})
    assert set(compared(a, b).n_zero) == {6}


def test_only_common_runs_are_compared():
    a = folder({"m": {"x": [100, 101, 102], "y": [50, 50, 50]}})
    b = folder({"m": {"z": [10, 20], "x": [110, None]}})
    rows = compared(a, b)
    assert [target for target, _ in rows.index] == ["x", "average"]
    assert list(rows[["n_planned", "n_paired", "reason"]].loc["x", "m"]) == [2, 1, "incomplete"]
    assert list(rows[["mean_a", "mean_b"]].loc["average", "m"]) == [50.0, 55.0]


def test_the_average_uses_seeds_that_are_ok_at_every_target_in_both():
    a = folder({"m": {"x": [100, 100, 100], "y": [100, "oom", 100]}})
    b = folder({"m": {"x": [110, 110, None], "y": [120, 120, 120]}})
    average = compared(a, b).loc["average", "m"]
    assert (average.n_paired, average.mean_difference) == (1, 7.5)


def test_methods_with_other_names_can_be_compared_and_holm_counts_all():
    a = folder({"old": {"x": [*range(100, 106)]}, "same": {"x": [100] * 6}})
    b = folder({"new": {"x": [*range(103, 109)]}, "same": {"x": [100] * 6}})
    rows = compared(a, b, old="new").loc["x"]
    assert list(rows.loc["old", ["p_two_sided", "p_holm"]]) == [0.03125, 0.0625]
    assert list(rows.loc["old", ["outcome", "reason", "n_family"]]) == ["unknown", "too few pairs", 2]
    assert list(rows.loc["same", ["outcome", "p_holm", "attainable_p"]]) == ["same", 1.0, 1.0]


def test_five_pairs_are_too_few_for_a_two_sided_test():
    row = compared(folder({"m": {"x": [100] * 5}}), folder({"m": {"x": [110] * 5}})).loc["x", "m"]
    assert (row.outcome, row.reason) == ("unknown", "too few pairs")
    assert (row.p_two_sided, row.attainable_p) == (0.0625, 0.0625)


@pytest.mark.parametrize("b", [{"m": {"y": [1]}}, {"m": {"x": [None]}}, {"n": {"x": [1]}}, {"m": {"x": ["oom"]}}])
def test_folders_without_common_runs_are_not_an_error(b):
    diff = diff_folders(folder({"m": {"x": [1]}}), folder(b))
    assert verdict(diff)[:2] == ("unknown", "nothing in common")
    assert [one.runs["ok_in_both"] for one in diff.experiments] == [0]
    assert (diff.rows.n_paired == 0).all()
    assert ("as in --match m=n" in verdict(diff).verdict) == ("n" in b)
