"""The sentences on an experiment report the results of tests, no more, and nothing twice."""

from __future__ import annotations

import pytest

from msda_bench.results.experiment_tables import views
from msda_bench.results.leaderboard import analyse

BASE = [100, 103, 98, 110, 95, 104, 99, 101]


def lead(step, seeds=8):
    """Leads the others by a little more in every run."""
    return {"x": [base + step * (place + 1) for place, base in enumerate(BASE[:seeds])]}


@pytest.fixture
def verdict(table):
    def sentences(runs, **options):
        (view,) = views(analyse(table(runs, **options)))
        return view.verdict

    return sentences


def power(points, comparisons=1):
    tests = "1 comparison" if comparisons == 1 else f"{comparisons} comparisons"
    median = "" if comparisons == 1 else " (the median of the comparisons)"
    return (
        f"With 8 seeds and {tests} a true difference of {points} points{median} would be found with a "
        "probability of 80 % by these exact two-sided signed-rank tests with Holm's correction; the intervals have "
        "level 95 %, not corrected."
    )


def test_the_verdict_gives_differences_with_intervals_and_the_power_of_the_tests(verdict):
    runs = {"SRC": lead(0), "MDAN": lead(-1), "DARN": lead(2), "ref": lead(9)}
    worse = "Significantly worse than it: SRC -4.50 [-7.00, -2.00] and MDAN -6.75 [-10.50, -3.00]."
    assert verdict(runs, baseline="SRC") == (
        "DARN has the best mean at x: 55.12 +- 1.14 % accuracy.",
        worse,
        "Significantly better than the baseline SRC: DARN +4.50 [+2.00, +7.00].",
        "Significantly worse than the baseline SRC: MDAN -2.25 [-3.50, -1.00].",
        power("3.8", comparisons=3),
    )
    near = {"x": [run + (-1) ** place for place, run in enumerate(lead(2)["x"])]}
    unsure = "Neither better nor worse than it could be shown: DANN +0.00 [-0.50, +0.50]."
    assert verdict({**runs, "DANN": near}, baseline="SRC")[1:3] == (worse, unsure)


def test_with_a_margin_methods_stand_against_the_baseline_alone(verdict):
    runs = {"SRC": lead(0), "DARN": lead(2), "MDAN": lead(-1)}
    assert verdict(runs, baseline="SRC", margin=1.0)[1:5] == (
        "Significantly worse than it: SRC -4.50 [-7.00, -2.00] and MDAN -6.75 [-10.50, -3.00].",
        "Better than the baseline SRC by more than 1 point: DARN +4.50 [+2.00, +7.00].",
        "Worse than the baseline SRC: MDAN -2.25 [-3.50, -1.00].",
        power("2.6", comparisons=2),
    )
    assert verdict({"SRC": lead(2), "DARN": lead(0)}, baseline="SRC", margin=1.0)[1] == (
        "Worse than it: DARN -4.50 [-7.00, -2.00]."
    )


def test_a_best_baseline_is_reported_once_and_only_equal_results_are_called_equal(verdict):
    sentences = verdict({"SRC": lead(2), "DARN": lead(0)}, baseline="SRC")
    assert sentences[1:] == ("Significantly worse than it: DARN -4.50 [-7.00, -2.00].", power("3.1"))
    sentences = verdict({"SRC": lead(2), "twin": lead(2), "DARN": lead(0)}, baseline="SRC")
    assert sentences[2] == "Equal to it in every pair: twin +0.00 [+0.00, +0.00]."


def test_a_control_that_is_best_is_tested_over_its_own_comparisons(verdict):
    few = {"SRC": lead(3, 7), "A": lead(0, 7), "B": lead(1, 7), "C": lead(2, 7)}
    assert verdict(few, baseline="SRC", against="SRC")[1] == (
        "Significantly worse than it: C -2.00 [-3.00, -1.00], B -4.00 [-6.00, -2.00] and A -6.00 [-9.00, -3.00]."
    )
    assert "among all 6 pairs of methods" in verdict(few, baseline="SRC")[1]


def test_too_few_seeds_report_how_many_are_needed(verdict):
    few = {"x": [*lead(1)["x"][:4], *[None] * 4]}
    sentences = verdict({"DARN": lead(2), "SRC": lead(0), "MDAN": few})
    assert sentences[1:3] == (
        "Significantly worse than it: SRC -4.50 [-7.00, -2.00].",
        "Too few pairs for a test against it: MDAN.",
    )
    assert sentences[-1] == "4 of 24 runs have no score (4 missing); tests take the seeds that both methods have."
    (_, certainty) = verdict({"a": lead(0, 3), "b": lead(1, 3), "c": lead(2, 3)}, baseline="a")
    assert certainty == (
        "That is not certain: with 3 seeds no difference among all 3 pairs of methods can be significant after Holm's "
        "correction; that takes 7."
    )
    best = {"x": [*lead(3)["x"][:4], *[None] * 4]}
    sentences = verdict({"SRC": lead(0), "DARN": lead(1), "MDAN": best}, baseline="SRC", against="SRC")
    assert sentences[1] == (
        "That is not certain: with 4 seeds no difference among the 2 comparisons with SRC can be significant after "
        "Holm's correction; that takes 7."
    )


def test_if_nothing_is_shown_against_baseline_or_control_the_verdict_says_so(verdict):
    up, down = ({"x": [run + sign * (-1) ** place for place, run in enumerate(BASE)]} for sign in (1, -1))
    sentences = verdict({"SRC": {"x": BASE}, "A": {"x": [102, *up["x"][1:]]}, "B": down}, baseline="SRC", against="B")
    assert sentences[0].startswith("A has the best mean")
    assert sentences[2] == "No method was shown to be better than the baseline SRC."
    assert sentences[3].startswith("Neither better nor worse than the baseline SRC could be shown: A ")
    assert sentences[4] == "No method was shown to be better than B."


def test_outlying_runs_are_named(verdict):
    (line,) = [line for line in verdict({"SRC": {"x": [*BASE[:7], 20]}, "DARN": lead(2)}) if "far from" in line]
    assert line.startswith("One run is far from the others of the same method and target and weighs on its mean: ")
    assert line.endswith(": SRC at x, seed 7 (10, median 49.75).")
