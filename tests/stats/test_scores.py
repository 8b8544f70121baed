from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from msda_bench.errors import StoreError
from msda_bench.stats.scores import collect_scores
from msda_bench.store.record import Outcome


def test_accuracies_are_exact_percentages(table):
    scores = table({"a": {"x": [1, Outcome(3, n_correct=2)]}}).scores
    assert scores.by_seed("a", "x") == {0: Fraction(1, 2), 1: Fraction(200, 3)}
    assert (scores.metric, scores.sign) == ("accuracy_percent", 1)


def test_squared_errors_are_means_and_less_is_better(table):
    scores = table({"a": {"x": [Outcome(8, sum_squared_error=0.5)]}}, task="regression").scores
    assert scores.by_seed("a", "x") == {0: Fraction(1, 16)}
    assert (scores.metric, scores.sign) == ("mse", -1)


def test_the_mean_over_targets_takes_only_whole_seeds(table):
    scores = table({"a": {"x": [100, 120, 140], "y": [110, "diverged", None]}}).scores
    assert scores.by_seed("a", None) == {0: Fraction(105, 2)}
    assert scores.counts("a", None) == {"ok": 1, "diverged": 1, "missing": 1}


def test_each_run_has_a_status_and_in_the_mean_the_gravest_counts(table):
    runs = {"x": ["failed: a", "timeout", "oom", "skipped: b", None], "y": [None, "oom", "diverged", 1, 1]}
    scores = table({"a": runs}).scores
    assert scores.counts("a", "x") == {"failed": 1, "timeout": 1, "oom": 1, "skipped": 1, "missing": 1}
    assert scores.counts("a", None) == {"failed": 1, "timeout": 1, "diverged": 1, "skipped": 1, "missing": 1}
    assert scores.messages == {("a", "x", 0): "a", ("a", "x", 3): "b"}


def test_a_run_that_the_plan_has_no_cell_for_is_missing(table):
    made = table({"a": {"x": [1, 2]}})
    plan = replace(made.plan, cells=made.plan.cells[:1])
    assert collect_scores(plan, made.records)[0].counts("a", "x") == {"ok": 1, "missing": 1}


def test_two_methods_may_share_a_record(table):
    made = table({"a": {"x": [1]}, "b": {"x": [None]}})
    cells = [replace(cell, key=made.plan.cells[0].key) for cell in made.plan.cells]
    scores = collect_scores(replace(made.plan, cells=tuple(cells)), made.records)[0]
    assert scores.by_seed("a", "x") == scores.by_seed("b", "x") == {0: Fraction(1, 2)}


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
        _ = table({"a": {"x": [outcome]}}, task=task).scores
