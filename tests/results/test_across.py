from __future__ import annotations

from dataclasses import replace
from itertools import chain, combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import msda_bench as mb
from msda_bench.analysis import Across, across_of, standings
from msda_bench.results.across import cliques
from msda_bench.results.experiment_tables import across_tables
from msda_bench.results.verdict import verdict_across
from msda_bench.store.record import Outcome
from tests.results.conftest import frame_of, gaining, holm, planned

PAIRS = list(combinations("abcdef", 2))


def across(results, *more) -> Across | None:
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


def test_each_dataset_counts_once_and_pairs_are_tested():
    found = across(datasets(8, a=3, b=2, c=2, ref=9))
    assert found.concludes
    assert found.datasets == tuple(f"d{i}" for i in range(8))
    assert found.mean_ranks == {"a": 1.0, "b": 2.5, "c": 2.5}
    first = found.rows[0]
    assert tuple(first[name] for name in ("scope", "first", "second", "n_planned")) == ("across_datasets", "a", "b", 8)
    p_values = [mb.signed_rank(range(1, 9), "two-sided").p] * 2 + [1.0]
    assert [pair["p_two_sided"] for pair in found.rows] == p_values
    assert [pair["p_holm"] for pair in found.rows] == holm(p_values)
    assert [pair["outcome"] for pair in found.rows] == ["better", "better", "same"]
    assert first["mean_difference"] == pytest.approx(0.45)
    assert found.cliques == (("b", "c"),)
    assert "8 datasets" in found.reason


def test_two_methods_can_differ_with_six_datasets_or_more():
    found = across(datasets(6, b=2, a=3))
    assert (found.concludes, found.methods, found.cliques) == (True, ("a", "b"), ())
    assert found.rows[0]["outcome"] == "worse"
    found = across(datasets(5, a=3, b=2))
    assert (found.concludes, found.cliques) == (False, ())
    assert found.reason == "5 datasets: under 6 no test across datasets can be significant"
    assert [(pair["outcome"], pair["reason"]) for pair in found.rows] == [("unknown", "too few pairs")]


def test_a_single_dataset_gives_none():
    assert across(datasets(1, a=3, b=2)) is None


def test_without_a_dataset_of_all_methods_there_are_no_ranks_to_show():
    parts = []
    for name, there in (("one", "a"), ("two", "b")):
        runs = {method: {"x": [Outcome(100, n_correct=50) if method == there else None]} for method in "ab"}
        parts.append(planned(runs, name, name))
    assert list(across_tables(across_of(frame_of(*parts)))) == []


def test_two_experiments_of_one_dataset_count_once():
    results = {"e1": ("d1", {"a": 520, "b": 500}), "e2": ("d1", {"a": 500, "b": 510}), "e3": ("d2", {"a": 1, "b": 0})}
    found = across(results)
    assert found.datasets == ("d1", "d2")
    assert found.rows[0]["n_planned"] == 2
    assert found.rows[0]["mean_difference"] == pytest.approx((0.5 + 0.1) / 2)
    assert found.mean_ranks == {"a": 1.0, "b": 2.0}


def test_a_method_missing_from_some_experiments_is_skipped_and_named():
    results = datasets(7, a=3, b=2)
    results["e3"][1]["late"] = 700
    found = across(results)
    assert found.methods == ("a", "b")
    assert found.skipped == ("e3: late not ranked in every experiment",)


def test_squared_errors_are_skipped_and_named():
    regression = planned({"a": {"x": [0.5]}, "b": {"x": [0.25]}}, task="regression")
    found = across(datasets(2, a=3, b=2), regression)
    assert found.datasets == ("d0", "d1")
    assert found.skipped == ("table: its metric is mse, not accuracy",)


def test_a_dataset_without_a_mean_makes_the_pair_incomplete():
    results = datasets(7, a=3, b=2, c=1)
    results["e6"][1]["b"] = None
    found = across(results)
    assert [pair["n_paired"] for pair in found.rows] == [6, 7, 6]
    # Three comparisons of six datasets cannot be significant.
    assert [(pair["outcome"], pair["reason"]) for pair in found.rows] == [
        ("unknown", "incomplete"),
        ("better", None),
        ("unknown", "incomplete"),
    ]
    assert found.mean_ranks == {"a": 1.0, "b": 2.0, "c": 3.0}


def test_there_are_no_common_methods():
    found = across({"e1": ("d1", {"a": 1, "b": 2}), "e2": ("d2", {"c": 1, "d": 2})})
    assert (found.concludes, found.rows, found.methods) == (False, (), ())
    assert "fewer than two methods" in found.reason


def test_each_dataset_has_its_test_against_the_baseline():
    runs = frame_of(*gaining(20, 30, 10, 40, 0, -50))
    found = mb.across(runs)
    assert found["method"].tolist() == ["up", "SRC", "even", "ref"]
    up, src, even, ref = found.to_dict("records")
    assert up["mean_gain"] == pytest.approx((2 + 3 + 1 + 4 + 0 - 5) / 6)
    assert [up[f"gain:e{place}"] for place in range(6)] == pytest.approx([2, 3, 1, 4, 0, -5])
    assert [up[name] for name in ("n_better", "n_worse", "n_tested", "n_experiments")] == [4, 1, 5, 6]  # d4: no pairs
    assert [up["outcome:e0"], up["outcome:e4"], up["outcome:e5"]] == ["better", "same", "worse"]
    assert up["mean_gain_low"] == up["mean_gain"] == up["mean_gain_high"]  # equal gains at every seed
    assert even["mean_gain_low"] < even["mean_gain"] < even["mean_gain_high"]
    assert [even["n_better"], even["n_worse"], even["n_tested"]] == [0, 0, 6]
    assert even["outcome:e0"] == "unknown"
    assert pd.isna(src["mean_gain"])
    assert (ref["reference"], ref["mean_gain"], ref["n_tested"]) == (True, 10, 0)
    text = " ".join(verdict_across(across_of(runs)))
    assert text.startswith(
        "Of 2 methods, none is significantly better than the baseline SRC on all 6 datasets; 1 could not be shown to "
        "be better on any"
    )
    assert "Better: up on 4. Worse: up on 1. Shown neither better nor worse on any dataset: even." in text
    assert "The largest mean gain in points of accuracy: up +0.83 [+0.83, +0.83] (the reference ref +10.00 " in text
    # The tables of each dataset agree.
    pairs = mb.compare(runs)
    own = pairs[(pairs["scope"] == "average") & (pairs["first"] == "SRC") & (pairs["second"] == "up")]
    assert own["outcome"].tolist() == ["worse", "worse", "worse", "worse", "same", "better"]


def test_too_few_seeds_for_many_methods_are_reported_and_nothing_is_counted():
    found = across_of(frame_of(*gaining(20, 30, 10, 40, 20, 50, n_seeds=6)))
    assert not standings(found)["n_tested"].any()
    said = verdict_across(found)[0]
    assert said == "Too few seeds to show a difference from the baseline SRC after Holm's correction."
    assert mb.across(frame_of(*gaining(20, 30)))["n_tested"].max() == 2


def test_a_dataset_with_a_corrupted_source_does_not_count_if_it_is_also_used_uncorrupted():
    sound = gaining(20, 30, 10, 40, 20, 50, tuned=True)
    poisoned = gaining(-90, name="bad", dataset="d0", corrupted="s\x1b[31m", tuned=True)
    found = across_of(frame_of(*sound, *poisoned))
    assert found.experiments == tuple(f"e{place}" for place in range(6))
    assert found.rows == across_of(frame_of(*sound)).rows
    (line,) = found.skipped
    assert line.startswith("bad: the labels of source s")
    assert line.endswith("are shuffled, and d0 itself counts")
    assert "\x1b" not in line
    assert "than the tuned baseline SRC on all 6" in verdict_across(found)[0]
    # Alone, it is the only experiment on its dataset.
    assert across_of(frame_of(*sound[1:], *poisoned)).experiments[-1] == "bad"


def test_without_a_common_baseline_there_are_no_gains():
    first, *others = gaining(20, 30, 10, 40, 20, 50)
    found = across_of(frame_of((replace(first[0], baseline="even"), *first[1:]), *others))
    assert (found.baseline, found.gains) == (None, ())
    assert found.concludes
    with pytest.raises(ValueError, match="fewer than two datasets"):
        mb.across(frame_of(first))


@given(st.sets(st.sampled_from(PAIRS)))
def test_cliques_are_the_largest_groups_without_a_difference(different: set[tuple[str, str]]) -> None:
    groups = chain.from_iterable(combinations("abcdef", size) for size in range(2, 7))
    alike = [set(group) for group in groups if not any(pair in different for pair in combinations(group, 2))]
    largest = [group for group in alike if not any(group < other for other in alike)]
    found = cliques("abcdef", different)
    assert sorted(map(sorted, largest)) == sorted(map(list, found))
    assert list(found) == sorted(found)


def test_an_experiment_without_one_of_its_sources_does_not_count_beside_the_whole_one():
    whole = gaining(20, 30, 10, 40, 20, 50)
    left_out = gaining(-90, name="d0-without-s", dataset="d0", without="s")
    found = across_of(frame_of(*whole, *left_out))
    assert found.rows == across_of(frame_of(*whole)).rows
    assert found.skipped == ("d0-without-s: source s is left out, and d0 itself counts",)


def scored(correct):
    """`correct[dataset][method]` are those of 1000 at each seed, of one target."""
    parts = []
    for dataset, methods in correct.items():
        runs = {name: {"x": [Outcome(1000, n_correct=n) for n in seeds]} for name, seeds in methods.items()}
        parts.append(planned(runs, dataset, dataset, baseline="SRC"))
    return mb.across(frame_of(*parts)).set_index("method")


def test_the_interval_of_the_mean_gain_adds_up_the_variances_of_datasets():
    gains = {"one": [30, -10, 25, 5, 40], "two": [5, 7, 6, 9], "three": [-80, 90, 10]}
    found = scored({name: {"SRC": [500] * len(own), "up": [500 + n for n in own]} for name, own in gains.items()})
    points = [[n / 10 for n in own] for own in gains.values()]
    errors = [stats.sem(own) ** 2 for own in points]
    df = sum(errors) ** 2 / sum(error**2 / (len(own) - 1) for error, own in zip(errors, points, strict=True))
    mean, error = sum(map(np.mean, points)) / 3, np.sqrt(sum(errors)) / 3
    low, high = stats.t.interval(0.95, df, mean, error)
    assert [found.loc["up", f"mean_gain{end}"] for end in ("", "_low", "_high")] == pytest.approx([mean, low, high])


def test_two_datasets_alike_have_the_interval_of_welch():
    ups = [[530, 490, 525, 505, 540], [495, 493, 494, 491]]
    found = scored({f"d{i}": {"SRC": [500] * len(own), "up": own} for i, own in enumerate(ups)}).loc["up"]
    # The mean of two gains is half the difference of one from the other's negative.
    one, two = ([(n - 500) / 10 for n in own] for own in ups)
    welch = stats.ttest_ind(one, [-gain for gain in two], equal_var=False).confidence_interval(0.95)
    assert [2 * found["mean_gain_low"], 2 * found["mean_gain_high"]] == pytest.approx([welch.low, welch.high])


def test_without_a_second_seed_there_is_no_interval():
    found = scored({name: {"SRC": [500], "up": [510]} for name in ("one", "two")}).loc["up"]
    assert found["mean_gain"] == 1
    assert found[["mean_gain_low", "mean_gain_high"]].isna().all()


@pytest.mark.slow
def test_the_interval_of_the_mean_gain_covers_the_true_one():
    random, repeats = np.random.default_rng(0), 400
    correct = {}  # the methods are references, of which no pairs are compared
    for dataset, (gain, spread) in {"calm": (10, 5), "wild": (-30, 40), "medium": (50, 15)}.items():
        draws = np.rint(random.normal(500 + gain, spread, (repeats, 6))).astype(int)
        correct[dataset] = {"SRC": [500] * 6} | {f"ref{place}": own.tolist() for place, own in enumerate(draws)}
    found = scored(correct).drop("SRC")
    covered = (found["mean_gain_low"] < 1) & (found["mean_gain_high"] > 1)
    # 400 draws of a probability of 0.95 lie between 0.92 and 0.98 in 995 of 1000 cases.
    assert 0.92 < covered.mean() < 0.98
