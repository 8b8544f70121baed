"""Methods over several datasets: mean ranks, tests of pairs, groups, and the mean gain over the baseline."""

from dataclasses import replace
from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import msda_bench as mb
from msda_bench.results.across import across_of, cliques
from msda_bench.results.experiment_tables import across_tables
from msda_bench.results.tables import csv_text
from msda_bench.results.verdict_across import verdict_across
from msda_bench.store.record import Outcome
from tests.results.conftest import frame_of, gained, gaining, holm, planned

PAIRS = list(combinations("abcdef", 2))
SIX = (20, 30, 10, 40, 20, 50)


def across(results, *more):
    """`results[experiment]` is (dataset, {method: correct of 1000 or None}), equal for all targets and seeds."""
    parts = []
    for name, (dataset, correct) in results.items():
        outcomes = {method: None if n is None else Outcome(1000, n_correct=n) for method, n in correct.items()}
        runs = {method: dict.fromkeys("xy", [outcome] * 2) for method, outcome in outcomes.items()}
        parts.append(planned(runs, name, dataset))
    return across_of(frame_of(*parts, *more))


def datasets(n, **steps):
    """n datasets; each method's lead over 500 grows from one dataset to the next by its step."""
    return {f"e{i}": (f"d{i}", {name: 500 + step * (i + 1) for name, step in steps.items()}) for i in range(n)}


def outcomes(comparison):
    return [(row.outcome, row.reason) for row in comparison.rows]


def test_each_dataset_counts_once_and_pairs_are_tested():
    comparison = across(datasets(8, a=3, b=2, c=2, ref=9))
    assert comparison.datasets == tuple(f"d{i}" for i in range(8))
    assert comparison.mean_ranks == {"a": 1.0, "b": 2.5, "c": 2.5}
    first = comparison.rows[0]
    p_values = [mb.signed_rank(range(1, 9), "two-sided").p] * 2 + [1.0]
    assert [row.p for row in comparison.rows] == p_values
    assert [row.p_holm for row in comparison.rows] == holm(p_values)
    assert outcomes(comparison) == [("better", None), ("better", None), ("same", None)]
    assert first.mean_difference == pytest.approx(0.45)
    assert comparison.cliques == (("b", "c"),)
    assert (comparison.concludes, "8 datasets" in comparison.reason) == (True, True)


def test_six_datasets_are_the_fewest_that_conclude():
    six, five = across(datasets(6, b=2, a=3)), across(datasets(5, a=3, b=2))
    assert (six.concludes, six.methods, six.cliques) == (True, ("a", "b"), ())
    assert outcomes(six) == [("worse", None)]
    assert (five.concludes, five.cliques) == (False, ())
    assert five.reason == "5 datasets: under 6 no test across datasets can be significant"
    assert outcomes(five) == [("unknown", "too few pairs")]
    assert across(datasets(1, a=3, b=2)) is None
    with pytest.raises(ValueError, match="fewer than two datasets"):
        mb.across(frame_of(*gaining(20)))


def test_without_a_dataset_of_all_methods_there_are_no_ranks_to_show():
    apart = across({"one": ("one", {"a": 500, "b": None}), "two": ("two", {"a": None, "b": 500})})
    assert list(across_tables(apart)) == []
    other = across({"e1": ("d1", {"a": 1, "b": 2}), "e2": ("d2", {"c": 1, "d": 2})})
    assert (other.concludes, other.rows, other.methods) == (False, (), ())
    assert "fewer than two methods" in other.reason


def test_two_experiments_of_one_dataset_count_once():
    comparison = across(
        {"e1": ("d1", {"a": 520, "b": 500}), "e2": ("d1", {"a": 500, "b": 510}), "e3": ("d2", {"a": 1, "b": 0})}
    )
    assert comparison.datasets == ("d1", "d2")
    assert comparison.rows[0].n_planned == 2
    assert comparison.rows[0].mean_difference == pytest.approx((0.5 + 0.1) / 2)
    assert comparison.mean_ranks == {"a": 1.0, "b": 2.0}


def test_what_does_not_count_is_named():
    results = datasets(7, a=3, b=2)
    results["e3"][1]["late"] = 700
    late = across(results, planned({"a": {"x": [0.5]}, "b": {"x": [0.25]}}, task="regression"))
    assert (late.methods, late.datasets) == (("a", "b"), tuple(f"d{i}" for i in range(7)))
    assert late.skipped == (
        "table: its metric is mse, not accuracy",
        "late: not ranked in every experiment",
    )
    waiting = across({**datasets(7, a=3, b=2), "planned": ("d7", {"a": None, "b": None})})
    assert (waiting.datasets, waiting.skipped) == (late.datasets, ("planned: no results yet",))
    sound = gaining(*SIX)
    poisoned = gaining(-90, name="bad", dataset="d0", corrupted="s\x1b[31m")
    left_out = gaining(-90, name="less", dataset="d0", without="s")
    comparison = across_of(frame_of(*sound, *poisoned, *left_out))
    assert comparison.experiments == tuple(f"e{place}" for place in range(6))
    assert comparison.rows == across_of(frame_of(*sound)).rows
    assert comparison.skipped == (
        "bad: the labels of source s [31m are shuffled, and d0 itself counts",
        "less: a source is left out, and d0 itself counts",
    )
    # Alone, it is the only experiment on its dataset.
    assert across_of(frame_of(*sound[1:], *poisoned)).experiments[-1] == "bad"


def test_a_dataset_without_a_mean_makes_the_pair_incomplete():
    results = datasets(7, a=3, b=2, c=1)
    results["e6"][1]["b"] = None
    comparison = across(results)
    assert [row.n_paired for row in comparison.rows] == [6, 7, 6]
    # Three comparisons of six datasets cannot be significant.
    assert outcomes(comparison) == [("unknown", "incomplete"), ("better", None), ("unknown", "incomplete")]
    assert comparison.mean_ranks == {"a": 1.0, "b": 2.0, "c": 3.0}


def test_each_dataset_has_its_test_against_the_baseline(golden):
    runs = frame_of(*gaining(20, 30, 10, 40, 0, -50))
    table = mb.across(runs)
    up = table.set_index("method").loc["up"]
    assert up["mean_gain"] == pytest.approx((2 + 3 + 1 + 4 + 0 - 5) / 6)
    assert [up[f"gain:e{place}"] for place in range(6)] == pytest.approx([2, 3, 1, 4, 0, -5])
    assert [up[name] for name in ("n_better", "n_worse", "n_tested", "n_experiments")] == [4, 1, 5, 6]  # d4: no pairs
    golden("across.csv", csv_text(table))
    golden("across.txt", "\n".join(verdict_across(across_of(runs))))
    pairs = mb.compare(runs)  # the tables of each dataset agree
    decided = pairs[(pairs["scope"] == "average") & (pairs["first"] == "SRC") & (pairs["second"] == "up")]
    assert decided["outcome"].tolist() == ["worse", "worse", "worse", "worse", "same", "better"]


def test_of_many_methods_that_gain_the_sentence_names_the_best_three():
    gains = {f"m{points}": [float(points)] * 10 for points in range(1, 8)}
    worse = gains | {"m7": [-7.0] * 10}
    first, *_ = verdict_across(across_of(gained(gains, worse)))
    assert first == (
        "7 of 7 methods gain over SRC on some of 2 datasets. The largest mean gains, in points: "
        "m6 +6.00 [+6.00, +6.00], better on 2 of 2; m5 +5.00 [+5.00, +5.00], better on 2 of 2; "
        "m4 +4.00 [+4.00, +4.00], better on 2 of 2. The mean gains of the other 4 are smaller."
    )
    del gains["m1"], worse["m1"]
    first, *_ = verdict_across(across_of(gained(gains, worse)))
    assert all(name in first for name in gains)


def test_without_a_common_baseline_there_are_no_gains():
    first, *others = gaining(*SIX)
    comparison = across_of(frame_of((replace(first[0], baseline="even"), *first[1:]), *others))
    assert (comparison.baseline, comparison.gains, comparison.concludes) == (None, (), True)


@settings(max_examples=40)
@given(st.sets(st.sampled_from(PAIRS)))
def test_cliques_are_the_largest_groups_without_a_difference(different):
    groups = chain.from_iterable(combinations("abcdef", size) for size in range(2, 7))
    alike = [set(group) for group in groups if not any(pair in different for pair in combinations(group, 2))]
    largest = [group for group in alike if not any(group < other for other in alike)]
    assert list(cliques("abcdef", different)) == sorted(tuple(sorted(group)) for group in largest)


def drawn(middles, seed=0, spread=1.0, seeds=6):
    """Gains of each method by experiment."""
    draw = np.random.default_rng(seed)
    return [
        {name: np.round(draw.normal(of[place], spread, seeds), 4).tolist() for name, of in middles.items()}
        for place in range(len(next(iter(middles.values()))))
    ]


def test_the_mean_gain_has_welchs_and_satterthwaites_interval():
    points = [3.0, -1.0, 2.5, 0.5, 4.0], [0.5, 0.7, 0.6, 0.9], [-0.8, 0.9, 0.1]
    errors = [stats.sem(own) ** 2 for own in points]
    df = sum(errors) ** 2 / sum(error**2 / (len(own) - 1) for error, own in zip(errors, points, strict=True))
    mean, error = sum(map(np.mean, points)) / 3, np.sqrt(sum(errors)) / 3
    row = mb.across(gained(*({"up": own} for own in points))).set_index("method").loc["up"]
    assert [row[f"mean_gain{end}"] for end in ("", "_low", "_high")] == pytest.approx(
        [mean, *stats.t.interval(0.95, df, mean, error)]
    )
    alone = mb.across(gained({"up": [1.0]}, {"up": [1.0]})).set_index("method").loc["up"]
    assert alone["mean_gain"] == 1
    assert alone[["mean_gain_low", "mean_gain_high"]].isna().all()


def test_a_task_without_headroom_is_named_and_leaves_what_is_said_across():
    gains = drawn({"A": (2.0, 3.0, 4.0), "ref": (10.0, 0.1, 12.0), "B": (0, 0, 0)})
    runs, rest = gained(*gains, headroom="ref"), gained(gains[0], gains[2])
    comparison = across_of(runs)
    assert comparison.experiments == ("e0", "e2")
    assert comparison.skipped == ("e1: no headroom, since ref is not shown to gain over SRC",)
    assert mb.across(runs)["mean_gain"].equals(mb.across(rest)["mean_gain"])
    assert len(across_of(gained(*gains)).experiments) == 3
    board = mb.leaderboard(runs)
    assert "e1" in set(board["experiment"])
    without = runs[(runs["method"] != "ref").to_numpy()]  # unknown, so that all count
    assert len(across_of(without).experiments) == 3


def test_headroom_across_is_that_of_the_named_reference_and_not_of_the_largest_gain():
    gains = {"A": (2.0, 3.0), "ref": (4.0, 5.0), "ref-alone": (20.0, 21.0), "ref2": (8.0, 9.0)}
    folder = [
        {name: [gain - 0.5, gain, gain + 0.5] for name, gain in zip(gains, of, strict=True)}
        for of in zip(*gains.values(), strict=True)
    ]

    def told(**options):
        return next(line for line in verdict_across(across_of(gained(*folder, **options))) if "headroom" in line)

    assert "ref +4.50" in told(headroom="ref")
    assert "ref2 +8.50" in told()  # it learns from the sources, too
