"""`msda-bench compare A B` from lists of scores; tests/cli/test_compare_two.py tests the printed text."""

import io

import pandas as pd
import pytest

from msda_bench.cli.main import main
from msda_bench.store.record import Outcome
from tests.results.conftest import planned, write_folder


@pytest.fixture
def compared(tmp_path, capsys):
    """`compared(experiments of A, those of B, option, ...)`: the rows, and the lines of the text."""

    def compare(a, b, *options):
        count = len(list(tmp_path.iterdir()))
        folders = [str(write_folder(tmp_path / f"{name}{count}", *parts)) for name, parts in (("a", a), ("b", b))]
        main(["compare", *folders, *options, "--format", "csv"])
        rows = pd.read_csv(io.StringIO(capsys.readouterr().out))
        main(["compare", *folders, *options])
        return rows, capsys.readouterr().out.replace("\n  ", " ").splitlines()

    return compare


@pytest.fixture
def rows(compared):
    """`rows(runs of A, runs of B, option, ...)`: the rows of one experiment, by target and method of A."""

    def compare(a, b, *options, task="classification"):
        made = compared([planned(a, "e", task=task)], [planned(b, "e", task=task)], *options)[0]
        return made.set_index(["target", "method_a"])

    return compare


def test_less_error_is_better_and_means_are_errors(rows):
    row = rows({"m": {"x": [2.0] * 6}}, {"m": {"x": [1.0] * 6}}, task="regression").loc["x", "m"]
    assert (row.mean_a, row.mean_b, row.mean_difference, row.outcome) == (2.0, 1.0, 1.0, "better")


def test_test_sets_of_other_sizes_are_compared_exactly(rows):
    """1/3 and 2/6 are equal, unlike differences of float percentages and means."""
    a = {"m": {"x": [Outcome(30, n_correct=10)] * 6, "y": [Outcome(70, n_correct=10)] * 6}}
    b = {"m": {"x": [Outcome(60, n_correct=20)] * 6, "y": [Outcome(210, n_correct=30)] * 6}}
    assert set(rows(a, b).outcome) == {"same"}


def test_only_common_runs_are_compared(rows):
    made = rows({"m": {"x": [100, 101, 102], "y": [50, 50, 50]}}, {"m": {"z": [10, 20], "x": [110, None]}})
    assert [target for target, _ in made.index] == ["x", "average"]
    assert list(made[["n_planned", "n_paired", "reason"]].loc["x", "m"]) == [2, 1, "incomplete"]
    assert list(made[["mean_a", "mean_b"]].loc["average", "m"]) == [50.0, 55.0]
    # The average uses seeds that are ok at every target in both.
    a = {"m": {"x": [100, 100, 100], "y": [100, "oom", 100]}}
    average = rows(a, {"m": {"x": [110, 110, None], "y": [120, 120, 120]}}).loc["average", "m"]
    assert (average.n_paired, average.mean_difference) == (1, 7.5)


def test_methods_with_other_names_can_be_compared_and_holm_counts_all(rows):
    a = {"old": {"x": [*range(100, 106)]}, "same": {"x": [100] * 6}}
    b = {"new": {"x": [*range(103, 109)]}, "same": {"x": [100] * 6}}
    made = rows(a, b, "--match", "old=new").loc["x"]
    assert made.loc["old", "p_holm"] == 0.0625  # twice that of one method
    assert list(made.loc["old", ["outcome", "reason"]]) == ["unknown", "too few pairs"]
    assert list(made.loc["same", ["outcome", "p_holm"]]) == ["same", 1.0]


@pytest.mark.parametrize("b", [{"m": {"y": [1]}}, {"m": {"x": [None]}}, {"n": {"x": [1]}}, {"m": {"x": ["oom"]}}])
def test_folders_without_common_runs_are_not_an_error(compared, b):
    rows, lines = compared([planned({"m": {"x": [1]}})], [planned(b)])
    assert lines[-1].startswith("verdict: nothing in common: no run is ok in both")
    assert (rows.n_paired == 0).all()


def test_experiments_pair_by_name_and_dataset_or_as_match_says(compared):
    sides = {
        "a": {"same": "d1", "old": "d2", "lone": "d3", "other": "d4"},
        "b": {"new": "d2", "one": "d3", "two": "d3", "same": "d1", "more": "d1", "other": "d5"},
    }
    parts = [[planned({"m": {"x": [1]}}, *table) for table in tables.items()] for tables in sides.values()]
    for options, expected in (((), [("same", "same")]), (("--match", "lone=two"), [("lone", "two")])):
        rows, lines = compared(*parts, *options)
        assert list(dict.fromkeys(zip(rows["experiment_a"], rows["experiment_b"], strict=True))) == expected
        for side, own in zip("ab", zip(*expected, strict=True), strict=True):
            only = [line.split()[3] for line in lines if line.startswith(f"only in {side.upper()}: ")]
            assert only == [name for name in sides[side] if name not in own]
