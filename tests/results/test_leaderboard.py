"""Ranks, marks, gains and regrets of the leaderboard frame."""

from dataclasses import replace

import pytest

import msda_bench as mb
from msda_bench.results.experiment_tables import views
from msda_bench.results.leaderboard import analyse
from msda_bench.store.record import Outcome
from tests.results.conftest import BASE, UP, frame_of, lead, many, planned, plus


def entries(runs, column="x"):
    board = mb.leaderboard(runs)
    board = board[board["target"] == column]
    return {row.method: row for row in board.astype(object).where(board.notna(), None).itertuples(index=False)}


def marks(runs, rule, column="x"):
    return {name: getattr(row, rule) for name, row in entries(runs, column).items()}


def test_ranks_are_by_mean_without_references(table):
    runs = {"a": {"x": [3, 3]}, "ref": {"x": [9, 9]}, "b": {"x": [5, 5]}, "c": {"x": [2, 4]}, "d": {"x": [1, None]}}
    ranks = marks(table(runs | {"e": {"x": [None, None]}}), "rank")
    assert ranks == {"a": 2, "ref": None, "b": 1, "c": 2, "d": 4, "e": None}


NEARLY = plus(8, 7, 6, 5, 4, 3, 2, -1)  # one-sided p 2/256; two-sided 4/256, times 6 pairs


MARKED = {
    "the best and those not worse": (
        {"worse": BASE, "best": plus(*UP), "close": plus(2, 3, 2, 9, 4, 7, 1, 7), "ref": plus(*[50] * 8)},
        (False, True, True, None), (False, True, True, None),
    ),
    "one significant test of many": (
        {"best": NEARLY, "b": BASE, "c": BASE, "d": BASE}, (True, False, False, False), (True,) * 4,
    ),
    "four seeds": ({"a": [9] * 4, "b": [1, 2, 3, 4]}, (None, None), (None, None)),
    "five seeds": ({"a": [9] * 5, "b": [1, 2, 3, 4, 5]}, (True, False), (None, None)),
    "a lone survivor": (
        {"lone": [200] + ["diverged"] * 7, "a": plus(*UP), "b": BASE}, (None, True, False), (None, True, False),
    ),
    "the control is the best of many": (
        {"SRC": lead(9)["x"], **{name: of["x"] for name, of in many(6).items()}}, (True, *[False] * 6),
        (True, *[False] * 6),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("runs", "paper", "holm"), MARKED.values(), ids=MARKED)
def test_bold_marks_the_best_and_the_methods_that_are_not_worse(table, runs, paper, holm):
    made = table({name: {"x": scores} for name, scores in runs.items()}, baseline="SRC" if "SRC" in runs else None)
    assert tuple(marks(made, "bold_paper").values()) == paper
    assert tuple(marks(made, "bold_holm").values()) == holm


def test_the_interval_of_a_percentage_stays_within_0_and_100(table):
    """Two seeds far apart, of 200 test rows each."""
    row = entries(table({"a": {"x": [200, 110]}}))["a"]
    assert (row.mean, row.mean_high) == (77.5, 100.0)
    assert row.mean_low == 0.0


def test_the_best_reference_is_the_oracle_column_by_column(table):
    runs = {name: {"x": [x], "y": [y]} for name, x, y in [("ref1", 150, 120), ("ref2", 140, 190), ("ref3", None, None)]}
    runs["SRC"] = {"x": [100], "y": [100]}
    assert [entries(table(runs), column)["SRC"].oracle for column in ("x", "y", "average")] == ["ref1", "ref2", "ref2"]
    assert entries(table(runs), "average")["SRC"].regret == 32.5


@pytest.mark.parametrize(
    ("gains", "headroom"),
    [
        ((1, 1, 1, 1, 1, 60), True),
        ((1, 1, 1, 1, 60), False),
        ((10, 11, 9, 10, 12), True),
        ((-1, 1, 1, 1, 60, 1), False),
    ],
)
def test_headroom_is_decided_by_the_exact_test_or_of_too_few_seeds_by_the_interval(gains, headroom, table):
    """Six gains that are all positive have p = 1/32, whatever their spread; five cannot have less than 1/16."""
    runs = table({"SRC": {"x": BASE[: len(gains)]}, "ref": {"x": plus(*gains)}}, baseline="SRC")
    assert entries(runs)["ref"].headroom == headroom


def test_each_run_has_a_status_and_the_worst_counts_in_the_mean(table):
    statuses = {"x": ["failed: a", "timeout", "oom", "skipped: b", None], "y": [None, "oom", "diverged", 1, 1]}
    runs = table({"a": statuses})
    assert runs["message"].dropna().tolist() == ["a", "b"]
    for column, counts in (
        ("x", {"failed": 1, "timeout": 1, "oom": 1, "skipped": 1, "missing": 1, "planned": 5}),
        ("average", {"failed": 1, "timeout": 1, "diverged": 1, "skipped": 1, "missing": 1, "planned": 5}),
    ):
        row = entries(runs, column)["a"]._asdict()
        assert {name[2:]: n for name, n in row.items() if name.startswith("n_") and n} == counts


def test_the_mean_over_targets_uses_only_complete_seeds(table):
    runs = table({"a": {"x": [100, Outcome(7, n_correct=3), 140], "y": [110, Outcome(3, n_correct=1), None]}})
    assert runs["score"].dropna().tolist() == [50, 300 / 7, 70, 55, 100 / 3]
    row = entries(runs, "average")["a"]
    assert (row.n_ok, row.n_missing) == (2, 1)
    assert row.mean == pytest.approx((105 / 2 + 300 / 14 + 100 / 6) / 2)


def test_a_run_without_a_row_is_missing(table):
    row = entries(table({"a": {"x": [1, 2]}, "b": {"x": [1, 2]}}).iloc[[0, 2, 3]])["a"]
    assert (row.n_ok, row.n_missing) == (1, 1)


AS_CHANCE = (7 * 60 + 15) / 8


@pytest.mark.parametrize(
    ("is_reference", "at_x", "average", "n_paired", "line"),
    [
        (True, AS_CHANCE, (AS_CHANCE + 55) / 2, 8, "1 run diverged and counts as chance does."),
        (False, 60, 57.5, 7,
         "1 of 48 runs have no score (1 diverged); tests take the seeds that both methods have."),
    ],
)  # fmt: skip
def test_a_diverged_run_counts_as_the_reference_chance_does(is_reference, at_x, average, n_paired, line):
    runs = {
        "SRC": {"x": [100] * 8, "y": [90] * 8},
        "A": {"x": [*[120] * 7, "diverged: loss is nan"], "y": [110] * 8},
        "chance": {"x": [*[20] * 7, 30], "y": [20] * 8},
    }
    table, *rest = planned(runs, baseline="SRC")
    *others, chance = table.methods
    frame = frame_of((replace(table, methods=(*others, replace(chance, reference=is_reference))), *rest))
    (view,) = views(analyse(frame))
    board = mb.leaderboard(frame).set_index(["method", "target"])
    for target, mean in (("x", at_x), ("average", average)):
        row = board.loc[("A", target)]
        assert (row["n_ok"], row["n_diverged"], row["mean"]) == (7, 1, pytest.approx(mean))
    pair = mb.compare(frame).query("first == 'SRC' and second == 'A' and target == 'x'").iloc[0]
    assert (pair["n_paired"], pair["mean_difference"]) == (n_paired, pytest.approx(50 - at_x))
    assert [said for said in view.verdict if "diverged" in said] == [line]
    assert frame["score"].isna().sum() == 1
