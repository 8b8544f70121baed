"""Ranks, marks, gains and regrets of the leaderboard frame."""

from __future__ import annotations

import math
import random
import statistics

import pytest
import scipy.stats

import msda_bench as mb
from msda_bench.errors import StoreError
from msda_bench.store.record import Outcome

UP = [1, 2, 3, 4, 5, 6, 7, 8]
BASE = [100, 103, 98, 110, 95, 104, 99, 101]


def plus(steps: list[int]) -> list[int]:
    return [base + step for base, step in zip(BASE, steps, strict=False)]


def entries(runs, column="x"):
    board = mb.leaderboard(runs)
    board = board[board["target"] == column]
    return {row.method: row for row in board.astype(object).where(board.notna(), None).itertuples(index=False)}


def marks(runs, rule, column="x"):
    return {name: getattr(row, rule) for name, row in entries(runs, column).items()}


def test_ranks_are_by_mean_without_references(table):
    runs = {"a": {"x": [3, 3]}, "ref": {"x": [9, 9]}, "b": {"x": [5, 5]}, "c": {"x": [2, 4]}, "d": {"x": [1, None]}}
    made = table(runs)
    assert marks(made, "rank") == {"a": 2, "ref": None, "b": 1, "c": 2, "d": 4}
    assert marks(table(runs | {"e": {"x": [None, None]}}), "rank")["e"] is None


def test_bold_marks_the_best_and_the_methods_that_are_not_worse(table):
    made = table(
        {
            "worse": {"x": BASE},
            "best": {"x": plus(UP)},
            "close": {"x": plus([2, 3, 2, 9, 4, 7, 1, 7])},
            "ref": {"x": plus([50] * 8)},
        }
    )
    assert marks(made, "bold_paper") == {"worse": False, "best": True, "close": True, "ref": None}
    assert marks(made, "bold_holm") == {"worse": False, "best": True, "close": True, "ref": None}


def test_the_two_rules_differ_where_one_test_in_many_is_significant(table):
    nearly = [8, 7, 6, 5, 4, 3, 2, -1]  # one-sided p 2/256; two-sided 4/256, times 6 pairs
    made = table({"best": {"x": plus(nearly)}, **{name: {"x": BASE} for name in ("b", "c", "d")}})
    assert marks(made, "bold_paper") == {"best": True, "b": False, "c": False, "d": False}
    assert marks(made, "bold_holm") == dict.fromkeys(("best", "b", "c", "d"), True)


@pytest.mark.parametrize(
    ("rule", "seeds", "marked"),
    [("bold_paper", 4, (None, None)), ("bold_paper", 5, (True, False)), ("bold_holm", 5, (None, None))],
)
def test_few_seeds_mark_nothing_and_five_only_by_the_papers_rule(table, rule, seeds, marked):
    made = table({"a": {"x": [9] * seeds}, "b": {"x": [1, 2, 3, 4, 5][:seeds]}})
    assert marks(made, rule) == dict(zip("ab", marked, strict=True))


def test_a_method_with_one_surviving_run_is_not_best(table):
    made = table({"lone": {"x": [200] + ["diverged"] * 7}, "a": {"x": plus(UP)}, "b": {"x": BASE}})
    assert marks(made, "bold_paper") == {"lone": None, "a": True, "b": False}
    lone = entries(made)["lone"]
    assert (lone.n_ok, lone.n_diverged, lone.n_missing, lone.n_planned) == (1, 7, 0, 8)


def test_the_average_has_its_own_bold_set(table):
    made = table({"a": {"x": plus(UP), "y": BASE}, "b": {"x": BASE, "y": plus([2 * step for step in UP])}})
    assert marks(made, "bold_paper", "x") == {"a": True, "b": False}
    assert marks(made, "bold_paper", "y") == {"a": False, "b": True}
    assert marks(made, "bold_paper", "average") == {"a": False, "b": True}


def test_false_alarms_of_both_rules_among_equal_methods(table):
    """With 20 seeds and 6 equal methods, some method is not bold in about 54.7 % and 4.3 % of columns."""
    draw, columns = random.Random(0), [str(number) for number in range(200)]
    equal = {
        name: {column: [Outcome(10**6, n_correct=draw.randrange(10**6)) for _ in range(20)] for column in columns}
        for name in "abcdef"
    }
    board = mb.leaderboard(table(equal)).query("target != 'average'")
    marked = {rule: board.groupby("target", observed=True)[rule].all() for rule in ("bold_paper", "bold_holm")}
    assert 0.42 < 1 - marked["bold_paper"].mean() < 0.68  # 3.6 standard errors to either side
    assert 1 - marked["bold_holm"].mean() < 0.10


def mean_and_error(values):
    return statistics.fmean(values), statistics.stdev(values) / math.sqrt(len(values))


def transfer(row):
    return row.gain, row.gain_standard_error, row.negative_transfer, row.oracle, row.regret, row.regret_standard_error


def test_gain_and_regret_are_paired_means_in_percent_points(table):
    runs = {"SRC": {"x": BASE[:5]}, "ref": {"x": plus([20, 21, 22, 20, 20])}, "a": {"x": plus([2, 4, 6, 2, 2])}}
    board = entries(table(runs, baseline="SRC"))
    whole = (*mean_and_error([10, 10.5, 11, 10, 10]), None)
    gain, regret = mean_and_error([1, 2, 3, 1, 1]), mean_and_error([9, 8.5, 8, 9, 9])
    assert transfer(board["a"]) == pytest.approx((*gain, None, "ref", *regret))
    assert transfer(board["SRC"]) == pytest.approx((None, None, None, "ref", *whole[:2]))
    assert transfer(board["ref"]) == pytest.approx((*whole, "ref", None, None))


@pytest.mark.parametrize(("steps", "negative"), [([-1, -2, -3, -4, -5, -6], True), ([-1, -2, -3, -4, -5, 1], False)])
def test_negative_transfer_is_the_outcome_worse(table, steps, negative):
    found = entries(table({"SRC": {"x": BASE[:6]}, "a": {"x": plus(steps)}}, baseline="SRC"))["a"]
    assert found.gain < 0
    assert found.negative_transfer is negative


def test_five_pairs_cannot_show_negative_transfer(table):
    found = entries(table({"SRC": {"x": BASE[:6]}, "a": {"x": [1, 2, 3, 4, 5, "diverged"]}}, baseline="SRC"))["a"]
    assert found.gain < 0
    assert found.negative_transfer is None


def test_the_best_reference_is_the_oracle_column_by_column(table):
    runs = {
        "ref1": {"x": [150], "y": [120]},
        "ref2": {"x": [140], "y": [190]},
        "ref3": {"x": [None], "y": [None]},
        "SRC": {"x": [100], "y": [100]},
    }
    assert [entries(table(runs), column)["SRC"].oracle for column in ("x", "y", "average")] == ["ref1", "ref2", "ref2"]
    assert entries(table(runs), "average")["SRC"].regret == 32.5


def test_a_smaller_error_is_a_gain(table):
    runs = {"SRC": {"x": [0.5]}, "a": {"x": [0.25]}, "ref": {"x": [0.125]}}
    found = entries(table(runs, task="regression", baseline="SRC"))["a"]
    assert (found.gain, found.regret) == (0.25, 0.125)


def test_gains_need_a_baseline_and_regrets_a_reference_with_common_seeds(table):
    assert transfer(entries(table({"a": {"x": [1]}}))["a"]) == (None,) * 6
    runs = {"SRC": {"x": [1, None]}, "a": {"x": [None, 1]}, "ref": {"x": [1, None]}}
    assert transfer(entries(table(runs, baseline="SRC"))["a"]) == (None, None, None, "ref", None, None)


def test_the_iqm_of_the_average_treats_each_target_separately(table):
    """Pooled runs would drop the easy and the hard target, and keep the middle one."""
    draw = random.Random(3)
    runs = {level: [draw.randrange(level, level + 40) for _ in range(9)] for level in (20, 90, 150)}
    found = mb.leaderboard(table({"a": {f"t{level}": scores for level, scores in runs.items()}}))
    by_target = dict(zip(found["target"], found["iqm"], strict=True))
    expected = [scipy.stats.trim_mean([run / 2 for run in scores], 0.25) for scores in runs.values()]
    assert list(by_target.values()) == pytest.approx([*expected, sum(expected) / 3])
    low, high = found[["iqm_low", "iqm_high"]].iloc[-1]
    assert low < by_target["average"] < high
    assert high - low < 20 / 2


def test_each_run_has_a_status_and_the_worst_counts_in_the_mean(table):
    statuses = {"x": ["failed: a", "timeout", "oom", "skipped: b", None], "y": [None, "oom", "diverged", 1, 1]}
    runs = table({"a": statuses})
    assert runs["message"].dropna().tolist() == ["a", "b"]
    for column, counts in (
        ("x", {"failed": 1, "timeout": 1, "oom": 1, "skipped": 1, "missing": 1}),
        ("average", {"failed": 1, "timeout": 1, "diverged": 1, "skipped": 1, "missing": 1}),
    ):
        row = entries(runs, column)["a"]._asdict()
        assert {name[2:]: n for name, n in row.items() if name.startswith("n_") and n and name != "n_planned"} == counts


def test_the_mean_over_targets_uses_only_complete_seeds(table):
    runs = table({"a": {"x": [100, Outcome(7, n_correct=3), 140], "y": [110, Outcome(3, n_correct=1), None]}})
    assert runs["score"].dropna().tolist() == [50, 300 / 7, 70, 55, 100 / 3]
    row = entries(runs, "average")["a"]
    assert (row.n_ok, row.n_missing) == (2, 1)
    assert row.mean == pytest.approx((105 / 2 + 300 / 14 + 100 / 6) / 2)
    squared = entries(table({"a": {"x": [Outcome(8, sum_squared_error=0.5)]}}, task="regression"))["a"]
    assert (squared.metric, squared.mean, row.metric) == ("mse", 1 / 16, "accuracy_percent")


def test_a_run_without_a_row_is_missing(table):
    """Of some rows of a frame, and of a plan that lacks a cell."""
    both = table({"a": {"x": [1, 2]}, "b": {"x": [1, 2]}})
    row = entries(both.iloc[[0, 2, 3]])["a"]
    assert (row.n_ok, row.n_missing) == (1, 1)


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
