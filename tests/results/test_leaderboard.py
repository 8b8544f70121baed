"""Ranks, marks, gains and regrets of the leaderboard frame."""

from __future__ import annotations

import random

import pytest
import scipy.stats

from msda_bench.results.estimates import summarize
from msda_bench.results.leaderboard import leaderboard
from msda_bench.store.record import Outcome

UP = [1, 2, 3, 4, 5, 6, 7, 8]
BASE = [100, 103, 98, 110, 95, 104, 99, 101]


def plus(steps: list[int]) -> list[int]:
    return [base + step for base, step in zip(BASE, steps, strict=False)]


def entries(runs, column="x"):
    found = leaderboard(runs)
    found = found[found["target"] == column]
    return {row.method: row for row in found.astype(object).where(found.notna(), None).itertuples(index=False)}


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
    board = leaderboard(table(equal)).query("target != 'average'")
    marked = {rule: board.groupby("target", observed=True)[rule].all() for rule in ("bold_paper", "bold_holm")}
    assert 0.42 < 1 - marked["bold_paper"].mean() < 0.68  # 3.6 standard errors to either side
    assert 1 - marked["bold_holm"].mean() < 0.10


def transfer(row):
    return row.gain, row.gain_standard_error, row.negative_transfer, row.oracle, row.regret, row.regret_standard_error


def test_gain_and_regret_are_paired_means_in_percent_points(table):
    runs = {"SRC": {"x": BASE[:5]}, "ref": {"x": plus([20, 21, 22, 20, 20])}, "a": {"x": plus([2, 4, 6, 2, 2])}}
    found = entries(table(runs, baseline="SRC"))
    assert transfer(found["a"]) == (*summarize([1, 2, 3, 1, 1])[1:], None, "ref", *summarize([9, 8.5, 8, 9, 9])[1:])
    whole = summarize([10, 10.5, 11, 10, 10])[1:]
    assert transfer(found["SRC"]) == (None, None, None, "ref", *whole)
    assert transfer(found["ref"]) == (*whole, None, "ref", None, None)


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
    found = leaderboard(table({"a": {f"t{level}": scores for level, scores in runs.items()}}))
    by_target = dict(zip(found["target"], found["iqm"], strict=True))
    expected = [scipy.stats.trim_mean([run / 2 for run in scores], 0.25) for scores in runs.values()]
    assert list(by_target.values()) == pytest.approx([*expected, sum(expected) / 3])
    low, high = found[["iqm_low", "iqm_high"]].iloc[-1]
    assert low < by_target["average"] < high
    assert high - low < 20 / 2


def test_intervals_need_five_runs(table):
    found = entries(table({"a": {"x": [1, 2, 3, 4, 5]}, "b": {"x": [1, 2, 3, 4, None]}}))
    assert found["a"].mean_low < found["a"].mean < found["a"].mean_high
    assert (found["b"].mean_low, found["b"].iqm_low, found["b"].iqm) == (None, None, 1.25)
