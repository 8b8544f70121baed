"""What a measure cannot show is not said: tests of few rows, and scores of constant answers."""

from dataclasses import replace

import pytest

import msda_bench as mb
from msda_bench.component.task import MetricInfo
from msda_bench.store.record import Outcome
from tests.results.conftest import planned, write_folder

BALANCED = MetricInfo("balanced_accuracy", "balanced accuracy", higher_is_better=True, percent=True)
SEEDS = 8


def few(size, right_in):
    """Tests of so many rows at eight seeds, all right in the first of these seeds."""
    return [Outcome(size, n_correct=size if seed < right_in else 0) for seed in range(SEEDS)]


def test_targets_of_one_or_two_rows_are_shown_but_not_in_the_mean(folder_of, shown):
    """One answer of a row counts 100 points there, and would turn the mean of all targets."""
    runs = {
        "SRC": {"x": [*range(100, 108)], "y": few(1, 8), "z": few(2, 4)},
        "up": {"x": [140 + seed * seed for seed in range(SEEDS)], "y": few(1, 0), "z": few(2, 4)},
    }
    folder = folder_of(runs)
    board = mb.leaderboard(folder).set_index(["method", "target"])["mean"]
    assert board["SRC", "y"] == 100.0
    for name in runs:
        assert board[name, "average"] == board[name, "x"]
    pairs = mb.compare(folder).set_index(["scope", "target"])
    assert pairs.loc[("target", "y"), ["outcome", "reason"]].tolist() == ["unknown", "too few test rows"]
    assert pairs["outcome"].loc["average"].tolist() == ["worse"]
    text = shown("leaderboard", folder)
    assert "1 of 1 method gains over SRC: up" in text
    assert (
        "note: 2 of 3 targets have 1 to 2 test rows (y and z), too few to compare methods by: they are shown, but they "
        "are not in the average and its tests"
    ) in text


def test_where_all_tests_are_of_few_rows_there_is_no_verdict(folder_of, shown):
    none, every = {"x": few(2, 0), "y": few(5, 0)}, {"x": few(2, 8), "y": few(5, 8)}
    text = shown("leaderboard", folder_of({"SRC": none, "up": every, "ref": none}))
    assert "Whether a method gains over SRC is open: the tests have too few rows to show a difference" in text
    assert "2 of 2 targets have 2 to 5 test rows (x and y), too few to compare methods by: no test here can" in text
    for word in ("of 1 method", "Labels of the target", "eadroom", "100.00 +- 0.00*"):
        assert word not in text, word


def answers(yes_of_20, no_of_180):
    """A test of 20 in one class and 180 in the other, by the right answers in each."""
    confusion = ((0, 0, no_of_180), (0, 1, 180 - no_of_180), (1, 0, 20 - yes_of_20), (1, 1, yes_of_20))
    kept = tuple(triple for triple in confusion if triple[2])
    return Outcome(200, n_correct=yes_of_20 + no_of_180, confusion=kept)


@pytest.mark.parametrize(
    ("metric", "level"),
    [(None, "always answering the most frequent class (90.0 %)"), (BALANCED, "chance (50.0 %)")],
)
def test_scores_of_constant_answers_are_called_so(metric, level, folder_of, shown):
    constant, good = [answers(0, 180)] * SEEDS, [answers(15, 175 + seed % 3) for seed in range(SEEDS)]
    mixed = {"x": constant, "y": good}
    what, _, percent = level.rpartition(" (")
    text = shown("leaderboard", folder_of({"SRC": mixed, "up": mixed}, metric=metric))
    assert f"At x ({percent} no method does clearly better than {what}." in text
    runs = {"SRC": mixed, "up": {"x": good, "y": good}, "low": {"x": constant, "y": constant}}
    text = shown("leaderboard", folder_of(runs, metric=metric))
    assert f"Not clearly better on average than {level}: low." in text
    assert f"SRC does not do clearly better than {what} at x ({percent}." in text
    nowhere = {"x": constant, "y": constant}
    text = shown("leaderboard", folder_of({"SRC": nowhere, "up": nowhere}, metric=metric))
    assert "no method does clearly better" in text
    assert "clearly better on average" not in text  # that says nothing more


def test_runs_that_answered_one_class_alone_are_named(folder_of, shown):
    """Not those that are right as often by other answers, nor tests of one class."""
    constant, good, single = answers(0, 180), answers(15, 175), Outcome(9, n_correct=9, confusion=((1, 1, 9),))
    other = answers(20, 160)  # 180 right, of both classes
    runs = {
        "SRC": {"x": [constant] * 3 + [good] * 5, "y": [other] * SEEDS, "z": [single] * SEEDS},
        "up": {"x": [good] * SEEDS, "y": [good] * SEEDS, "z": [single] * SEEDS},
    }
    text = shown("leaderboard", folder_of(runs))
    assert "one class alone was answered for every test row: SRC at x (class 0, 3 of 8 runs) note" in f"{text} note"
    assert text.count("one class alone") == 1


@pytest.mark.parametrize(("metric", "level"), [("auroc", 50.0), ("auprc", 10.0)])
def test_scores_of_one_class_have_its_chance(metric, level, tmp_path):
    measure = MetricInfo(metric, metric, higher_is_better=True, percent=True, stored=True, params={"positive": 1})
    part = planned({"SRC": {"x": [answers(15, 175)] * SEEDS}}, baseline="SRC", metric=measure)
    for value, expected in ((level + 1, ()), (level, ("x",))):
        records = {key: replace(record, metrics={metric: value / 100}) for key, record in part[2].items()}
        row = mb.advice(write_folder(tmp_path / f"{value}", (*part[:2], records))).iloc[0]
        assert row["at_chance"] == expected if row["method"] else expected == ("x",)
