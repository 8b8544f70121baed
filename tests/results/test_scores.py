from __future__ import annotations

from dataclasses import replace

import pytest

from msda_bench.errors import StoreError
from msda_bench.results.frame import runs_frame
from msda_bench.results.scores import grids
from msda_bench.store.record import Outcome
from tests.results.conftest import planned


def grid(runs):
    (found,) = grids(runs)
    return found


def scores(runs, method="a", column="x"):
    found = grid(runs)
    merits = found.merits[column]
    return {seed: found.sign * merit for seed, merit in merits.by_seed[method].items()}


def test_accuracies_are_percentages(table):
    runs = table({"a": {"x": [1, Outcome(3, n_correct=2)]}})
    assert scores(runs) == {0: 0.5, 1: 200 / 3}
    assert runs["score"].tolist() == [0.5, 200 / 3]
    assert (grid(runs).metric, grid(runs).sign) == ("accuracy_percent", 1)


def test_squared_errors_are_means_and_less_is_better(table):
    runs = table({"a": {"x": [Outcome(8, sum_squared_error=0.5)]}}, task="regression")
    assert scores(runs) == {0: 1 / 16}
    assert (grid(runs).metric, grid(runs).sign) == ("mse", -1)


def test_the_mean_over_targets_uses_only_complete_seeds(table):
    runs = table({"a": {"x": [100, Outcome(7, n_correct=3), 140], "y": [110, Outcome(3, n_correct=1), None]}})
    expected = {0: 105 / 2, 1: 300 / 14 + 100 / 6}
    assert scores(runs, column=None) == pytest.approx(expected)
    assert grid(runs).counts("a", None) == {"ok": 2, "missing": 1}


def test_each_run_has_a_status_and_the_worst_counts_in_the_mean(table):
    statuses = {"x": ["failed: a", "timeout", "oom", "skipped: b", None], "y": [None, "oom", "diverged", 1, 1]}
    runs = table({"a": statuses})
    assert grid(runs).counts("a", "x") == {"failed": 1, "timeout": 1, "oom": 1, "skipped": 1, "missing": 1}
    assert grid(runs).counts("a", None) == {"failed": 1, "timeout": 1, "diverged": 1, "skipped": 1, "missing": 1}
    assert runs["message"].dropna().tolist() == ["a", "b"]


def test_a_run_without_cell_or_record_is_missing(table):
    experiment, cells, records = planned({"a": {"x": [1, 2]}})
    plan = table({"a": {"x": [1]}}).attrs["plan"]
    runs = runs_frame(replace(plan, experiments=(experiment,), cells=tuple(cells[:1])), records)
    assert runs["status"].tolist() == ["ok", "missing"]
    both = table({"a": {"x": [1, 2]}, "b": {"x": [1, 2]}})
    assert grid(both.iloc[[0, 2, 3]]).counts("a", "x") == {"ok": 1, "missing": 1}


def test_two_methods_may_share_a_record(table):
    experiment, cells, records = planned({"a": {"x": [1]}, "b": {"x": [None]}})
    plan = table({"a": {"x": [1]}}).attrs["plan"]
    shared = tuple(replace(cell, key=cells[0].key) for cell in cells)
    runs = runs_frame(replace(plan, experiments=(experiment,), cells=shared), records)
    assert scores(runs, "a") == scores(runs, "b") == {0: 0.5}


@pytest.mark.parametrize(
    ("task", "outcome"),
    [
        ("classification", Outcome(5, sum_squared_error=1.0)),
        ("regression", Outcome(5, n_correct=1)),
        ("classification", Outcome(0, n_correct=0)),
        ("classification", Outcome(5, n_correct=6)),
        ("classification", Outcome(5, n_correct=-1)),
        ("classification", Outcome(5, n_correct=1, sum_squared_error=1.0)),
        ("regression", Outcome(5, sum_squared_error=-1.0)),
    ],
)
def test_an_ok_record_without_a_possible_outcome_is_named(table, task, outcome):
    with pytest.raises(StoreError, match=f"record [0-9a-f]{{64}}: ok, but without a possible outcome of a {task} run"):
        table({"a": {"x": [outcome]}}, task=task)
