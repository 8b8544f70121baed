"""`msda-bench compare A B` on folders written by the store."""

import io

import pandas as pd
import pytest

from msda_bench.cli.main import main
from msda_bench.store.record import Outcome
from tests.results.conftest import BASE, UP, planned, plus, with_cells, write_folder


@pytest.fixture
def compared(tmp_path, monkeypatch, capsys):
    """`compared(experiments of A, those of B, option, ...)`: the exit code, the rows, and the text."""
    monkeypatch.chdir(tmp_path)

    def compare(a, b, *options):
        folders = [str(write_folder(tmp_path / name, *parts)) for name, parts in (("a", a), ("b", b))]
        before = {path: path.read_bytes() for path in tmp_path.rglob("*.*")}
        main(["compare", *folders, *options, "--format", "csv"])
        rows = pd.read_csv(io.StringIO(capsys.readouterr().out))
        code = main(["compare", *folders, *options])
        assert {path: path.read_bytes() for path in tmp_path.rglob("*.*")} == before
        return code, rows.set_index(["target", "method_a"]), capsys.readouterr().out

    return compare


def test_golden(compared, golden):
    """Failed, missing and equal runs, other settings, and a method, seeds and an experiment of one folder alone."""
    nine = [*BASE, 100]
    of_a = {"SRC": {"x": nine, "y": nine}, "DARN": {"x": nine, "y": nine}, "TAR": {"x": nine, "y": nine}}
    of_b = {
        "SRC": {"x": BASE, "y": [*BASE[:7], None]},
        "DARN": {"x": plus(*UP), "y": [*plus(*UP[:7]), "failed: no memory"]},
        "OTHER": {"x": BASE, "y": BASE},
    }
    a = with_cells(planned(of_a, baseline="SRC"), lambda _: {"training": {"epochs": 3}, "engine": 1})
    b = with_cells(planned(of_b), lambda place: {"training": {"epochs": 4 - place.seed % 2}, "engine": 1})
    code, rows, text = compared([a], [b, planned({"m": {"z": [1]}}, "lone", "d")])
    assert code == 1
    golden("compare-folders.csv", rows.to_csv())
    golden("compare-folders.txt", text)


def test_equal_folders_are_complete(compared):
    part = planned({"m": {"x": [2.0] * 6}}, task="regression")
    code, _, text = compared([part], [part])
    assert code == 0
    assert "same: 6 of 6 runs that both plan are ok in both, 6 with an equal result" in text


def test_another_alpha_and_why_a_folder_is_not_complete_are_said(compared):
    runs = {"m": {"x": [100] * 6}}
    stopped = planned(runs | {"n": {"x": [*[90] * 5, "failed: no memory"]}}, alpha=0.1)
    code, _, text = compared([planned(runs)], [stopped])
    assert "differs: alpha: A 0.05, B 0.1; that of A counts here" in text
    assert (code, "problem: B: " in text, "no memory" in text, "problem: A" in text) == (1, True, True, False)


def test_less_error_is_better_and_means_are_errors(compared):
    sides = [[planned({"m": {"x": [error] * 6}}, task="regression")] for error in (2.0, 1.0)]
    row = compared(*sides)[1].loc["x", "m"]
    assert (row.mean_a, row.mean_b, row.mean_difference, row.outcome) == (2.0, 1.0, 1.0, "better")


def test_test_sets_of_other_sizes_are_compared_exactly(compared):
    """1/3 and 2/6 are equal, unlike differences of float percentages and means."""
    a = {"m": {"x": [Outcome(30, n_correct=10)] * 6, "y": [Outcome(70, n_correct=10)] * 6}}
    b = {"m": {"x": [Outcome(60, n_correct=20)] * 6, "y": [Outcome(210, n_correct=30)] * 6}}
    assert set(compared([planned(a)], [planned(b)])[1].outcome) == {"same"}


def test_the_average_is_over_common_targets_and_seeds_that_are_ok_at_all_of_them(compared):
    a = {"m": {"x": [100, 100, 100], "y": [100, "oom", 100], "z": [50, 50, 50]}}
    b = {"m": {"x": [110, 110, None], "y": [120, 120, 120]}}
    average = compared([planned(a)], [planned(b)])[1].loc["average", "m"]
    assert (average.n_planned, average.n_paired, average.mean_difference, average.reason) == (3, 1, 7.5, "incomplete")


def test_methods_with_other_names_can_be_compared_and_holm_counts_all(compared):
    a = {"old": {"x": [*range(100, 106)]}, "same": {"x": [100] * 6}}
    b = {"new": {"x": [*range(103, 109)]}, "same": {"x": [100] * 6}}
    _, rows, text = compared([planned(a)], [planned(b)], "--match", "old=new")
    assert rows.loc[("x", "old"), ["p_holm", "outcome", "reason"]].tolist() == [0.0625, "unknown", "too few pairs"]
    assert "(0.0625)" in text  # no difference of so few pairs could be significant
    assert rows.loc[("x", "same"), ["p_holm", "outcome"]].tolist() == [1.0, "same"]


@pytest.mark.parametrize("b", [{"m": {"y": [1]}}, {"m": {"x": [None]}}, {"n": {"x": [1]}}, {"m": {"x": ["oom"]}}])
def test_folders_without_common_runs_are_not_an_error(compared, b):
    code, rows, text = compared([planned({"m": {"x": [1]}})], [planned(b)])
    assert (code, "verdict: nothing in common: no run is ok in both" in text) == (1, True)
    assert (rows.n_paired == 0).all()


@pytest.mark.parametrize(("options", "pairs"), [((), [("same", "same")]), (("--match", "lone=two"), [("lone", "two")])])
def test_experiments_pair_by_name_and_dataset_or_as_match_says(compared, options, pairs):
    a = {"same": "d1", "old": "d2", "lone": "d3", "other": "d4"}
    b = {"new": "d2", "one": "d3", "two": "d3", "same": "d1", "more": "d1", "other": "d5"}
    sides = [[planned({"m": {"x": [1]}}, *table) for table in tables.items()] for tables in (a, b)]
    _, rows, text = compared(*sides, *options)
    assert list(dict.fromkeys(zip(rows["experiment_a"], rows["experiment_b"], strict=True))) == pairs
    assert text.count("a whole experiment") == len(a) + len(b) - 2
