"""The sentences on an experiment report the results of tests, no more, and nothing twice."""

from __future__ import annotations

import pytest

from msda_bench.results.experiment_tables import views
from msda_bench.results.leaderboard import analyse

BASE = [100, 103, 98, 110, 95, 104, 99, 101]


def lead(step, of=BASE):
    """Leads the others by a little more in every run."""
    return {"x": [base + step * (place + 1) for place, base in enumerate(of)]}


@pytest.fixture
def verdict(table):
    def sentences(runs, **options):
        (view,) = views(analyse(table(runs, **options)))
        return view.verdict

    return sentences


def power(points, seeds=8, comparisons=1):
    tests = "1 comparison" if comparisons == 1 else f"{comparisons} comparisons"
    median = "" if comparisons == 1 else " (the median of the comparisons)"
    return (
        f"With {seeds} seeds and {tests} a true difference of {points} points{median} would be found with a "
        "probability of 80 % by these exact two-sided signed-rank tests with Holm's correction; the intervals have "
        "level 95 %, not corrected."
    )


def test_the_verdict_gives_differences_with_intervals_and_the_power_of_the_tests(verdict):
    runs = {"SRC": lead(0), "MDAN": lead(-1), "DARN": lead(2), "ref": lead(9)}
    assert verdict(runs, baseline="SRC") == (
        "DARN has the best mean at x: 55.12 +- 1.14 % accuracy.",
        "Significantly worse than it: SRC -4.50 [-7.00, -2.00] and MDAN -6.75 [-10.50, -3.00].",
        "Significantly better than the baseline SRC: DARN +4.50 [+2.00, +7.00].",
        "Significantly worse than the baseline SRC: MDAN -2.25 [-3.50, -1.00].",
        power("3.8", comparisons=3),
    )
    near = {"x": [run + (-1) ** place for place, run in enumerate(lead(2)["x"])]}
    assert verdict({**runs, "DANN": near}, baseline="SRC")[1:3] == (
        "Significantly worse than it: SRC -4.50 [-7.00, -2.00] and MDAN -6.75 [-10.50, -3.00].",
        "Neither better nor worse than it could be shown: DANN +0.00 [-0.50, +0.50].",
    )


def test_a_baseline_that_is_best_is_reported_once(verdict):
    found = verdict({"SRC": lead(2), "DARN": lead(0)}, baseline="SRC")
    assert found[1:] == ("Significantly worse than it: DARN -4.50 [-7.00, -2.00].", power("3.1"))


def test_methods_with_equal_results_are_called_equal_and_nothing_else_is(verdict):
    found = verdict({"SRC": lead(2), "twin": lead(2), "DARN": lead(0)}, baseline="SRC")
    assert found[2] == "Equal to it in every pair: twin +0.00 [+0.00, +0.00]."
    assert not any("no difference" in line.lower() for line in found)


def test_a_control_that_is_best_is_tested_over_its_own_comparisons(verdict):
    runs = {"SRC": lead(3), "A": lead(0), "B": lead(1), "C": lead(2)}
    few = {name: {"x": found["x"][:7]} for name, found in runs.items()}
    assert verdict(few, baseline="SRC", against="SRC")[1] == (
        "Significantly worse than it: C -2.00 [-3.00, -1.00], B -4.00 [-6.00, -2.00] and A -6.00 [-9.00, -3.00]."
    )
    assert "among all 6 pairs of methods" in verdict(few, baseline="SRC")[1]


def test_differences_that_no_test_can_show_are_not_called_worse(verdict):
    few = {"x": [*lead(1)["x"][:4], *[None] * 4]}
    found = verdict({"DARN": lead(2), "SRC": lead(0), "MDAN": few})
    assert found[1:3] == (
        "Significantly worse than it: SRC -4.50 [-7.00, -2.00].",
        "Too few pairs for a test against it: MDAN.",
    )
    assert found[-1] == "4 of 24 runs have no score (4 missing); tests take the seeds that both methods have."


def test_too_few_seeds_report_how_many_are_needed(verdict):
    three = {name: {"x": runs["x"][:3]} for name, runs in {"a": lead(0), "b": lead(1), "c": lead(2)}.items()}
    (_, certainty) = verdict(three, baseline="a")
    few = "with 3 seeds no difference among all 3 pairs of methods can be significant after Holm's correction"
    assert certainty == f"That is not certain: {few}; that takes 7."


def test_if_nothing_is_shown_against_baseline_or_control_the_verdict_says_so(verdict):
    up, down = ({"x": [run + sign * (-1) ** place for place, run in enumerate(BASE)]} for sign in (1, -1))
    found = verdict({"SRC": {"x": BASE}, "A": {"x": [102, *up["x"][1:]]}, "B": down}, baseline="SRC", against="B")
    assert found[0].startswith("A has the best mean")
    assert found[2] == "No method was shown to be better than the baseline SRC."
    assert found[3].startswith("Neither better nor worse than the baseline SRC could be shown: A ")
    assert found[4] == "No method was shown to be better than B."


def test_outlying_runs_are_named(verdict):
    found = verdict({"SRC": {"x": [*BASE[:7], 20]}, "DARN": lead(2)})
    (line,) = [line for line in found if line.startswith("One run is far")]
    assert line.endswith("weighs on its mean: SRC at x, seed 7 (10, median 49.75).")
