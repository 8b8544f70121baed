"""`msda-bench compare A B` from lists of scores; tests/cli/test_compare_two.py tests the printed text."""

import io

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msda_bench as mb
from msda_bench.cli.main import main
from msda_bench.results.align import differences
from msda_bench.store.record import Outcome
from tests.results.conftest import planned, write_folder

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@pytest.fixture
def compared(tmp_path, capsys):
    """`compared(runs of A, runs of B, option, ...)`: the rows by target and method of A, and the verdict."""

    def compare(a, b, *options, task="classification"):
        folders = [
            str(write_folder(tmp_path / f"{name}{len(list(tmp_path.iterdir()))}", planned(runs, "e", task=task)))
            for name, runs in (("a", a), ("b", b))
        ]
        main(["compare", *folders, *options, "--format", "csv"])
        rows = pd.read_csv(io.StringIO(capsys.readouterr().out)).set_index(["target", "method_a"])
        main(["compare", *folders, *options])
        return rows, " ".join(capsys.readouterr().out.partition("verdict: ")[2].split())

    return compare


@pytest.mark.parametrize(
    ("task", "a", "b", "means"),
    [
        ("classification", [*range(100, 112, 2)], [*range(102, 126, 4)][:6], (52.5, 56.0, 3.5)),
        ("regression", [2.0] * 6, [1.0] * 6, (2.0, 1.0, 1.0)),  # less error is better, and means are errors
    ],
)
def test_differences_are_b_minus_a_for_each_seed(compared, task, a, b, means):
    ours, theirs = {"m": {"x": a}}, {"m": {"x": b}}
    rows, verdict = compared(ours, theirs, task=task)
    row = rows.loc["x", "m"]
    assert (row.mean_a, row.mean_b, row.mean_difference) == means
    assert (row.wins, row.p_two_sided, row.p_holm, row.outcome) == (6, 0.03125, 0.03125, "better")
    assert row.p_two_sided == mb.signed_rank(range(1, 7), "two-sided").p
    pd.testing.assert_series_equal(rows.loc["average", "m"], row, check_names=False)
    assert "B is better for 1 (m" in verdict
    assert "worse for 1 (m" in compared(theirs, ours, task=task)[1]


def test_test_sets_of_other_sizes_are_compared_exactly(compared):
    """1/3 and 2/6 are equal, unlike differences of float percentages and means."""
    a = {"m": {"x": [Outcome(3, n_correct=1)] * 6, "y": [Outcome(7, n_correct=1)] * 6}}
    b = {"m": {"x": [Outcome(6, n_correct=2)] * 6, "y": [Outcome(21, n_correct=3)] * 6}}
    assert set(compared(a, b)[0].n_zero) == {6}


def test_only_common_runs_are_compared(compared):
    rows, _ = compared({"m": {"x": [100, 101, 102], "y": [50, 50, 50]}}, {"m": {"z": [10, 20], "x": [110, None]}})
    assert [target for target, _ in rows.index] == ["x", "average"]
    assert list(rows[["n_planned", "n_paired", "reason"]].loc["x", "m"]) == [2, 1, "incomplete"]
    assert list(rows[["mean_a", "mean_b"]].loc["average", "m"]) == [50.0, 55.0]
    # The average uses seeds that are ok at every target in both.
    a = {"m": {"x": [100, 100, 100], "y": [100, "oom", 100]}}
    b = {"m": {"x": [110, 110, None], "y": [120, 120, 120]}}
    average = compared(a, b)[0].loc["average", "m"]
    assert (average.n_paired, average.mean_difference) == (1, 7.5)


def test_methods_with_other_names_can_be_compared_and_holm_counts_all(compared):
    a = {"old": {"x": [*range(100, 106)]}, "same": {"x": [100] * 6}}
    b = {"new": {"x": [*range(103, 109)]}, "same": {"x": [100] * 6}}
    rows = compared(a, b, "--match", "old=new")[0].loc["x"]
    assert list(rows.loc["old", ["p_two_sided", "p_holm"]]) == [0.03125, 0.0625]
    assert list(rows.loc["old", ["outcome", "reason", "n_family"]]) == ["unknown", "too few pairs", 2]
    assert list(rows.loc["same", ["outcome", "p_holm", "attainable_p"]]) == ["same", 1.0, 1.0]


@pytest.mark.parametrize("b", [{"m": {"y": [1]}}, {"m": {"x": [None]}}, {"n": {"x": [1]}}, {"m": {"x": ["oom"]}}])
def test_folders_without_common_runs_are_not_an_error(compared, b):
    rows, verdict = compared({"m": {"x": [1]}}, b)
    assert verdict.startswith("nothing in common: no run is ok in both")
    assert (rows.n_paired == 0).all()
    assert ("as in --match m=n" in verdict) == ("n" in b)


def test_experiments_pair_by_name_then_those_alone_on_their_dataset(tmp_path, capsys):
    sides = {
        "a": {"same": "d1", "old": "d2", "lone": "d3", "other": "d4"},
        "b": {"new": "d2", "one": "d3", "two": "d3", "same": "d1", "more": "d1", "other": "d5"},
    }
    folders = [
        str(write_folder(tmp_path / side, *(planned({"m": {"x": [1]}}, *table) for table in tables.items())))
        for side, tables in sides.items()
    ]
    for options, expected in (((), [("same", "same"), ("old", "new")]), (("--match", "lone=two"), [("lone", "two")])):
        main(["compare", *folders, "--format", "csv", *options])
        rows = pd.read_csv(io.StringIO(capsys.readouterr().out))
        assert list(dict.fromkeys(zip(rows["experiment_a"], rows["experiment_b"], strict=True))) == expected
        main(["compare", *folders, *options])
        lines = capsys.readouterr().out.splitlines()
        for side, own in zip("ab", zip(*expected, strict=True), strict=True):
            only = [line.split()[3] for line in lines if line.startswith(f"only in {side.upper()}: ")]
            assert only == [name for name in sides[side] if name not in own]


@settings(max_examples=40)
@given(JSON, JSON)
def test_a_difference_is_named_exactly_where_two_values_differ(a, b):
    assert bool(list(differences(a, b))) == (a != b)
    assert [(what, second, first) for what, first, second in differences(a, b)] == list(differences(b, a))
