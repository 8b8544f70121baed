from __future__ import annotations

from itertools import chain, combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import false_discovery_control

from msda_bench.results.compare import compare
from msda_bench.results.decision import benjamini_hochberg, holm
from msda_bench.results.signed_rank import signed_rank

BASE = [100, 103, 98, 110, 95, 104, 99, 101]


def plus(*steps: int) -> list[int]:
    return [base + step for base, step in zip(BASE, steps, strict=True)]


def rows(runs, scope=None):
    found = compare(runs)
    found = found if scope is None else found[found["scope"] == scope]
    return list(found.astype(object).where(found.notna(), None).itertuples(index=False))


def only(runs, scope="target"):
    (found,) = rows(runs, scope)
    return found


def test_pairs_are_taken_seed_by_seed_in_percent(table):
    pair = only(table({"a": {"x": plus(1, 2, 3, -1, 0, 5, 6, 2)}, "b": {"x": BASE}}))
    differences = [1, 2, 3, -1, 0, 5, 6, 2]
    test = signed_rank(differences, "two-sided")
    assert (pair.statistic, pair.p_two_sided, pair.n_zero) == (test.statistic, test.p, 1)
    assert pair.p_one_sided == signed_rank(differences, "greater").p
    assert (pair.median_difference, pair.mean_difference) == (1.0, 18 / 16)
    assert (pair.wins, pair.ties, pair.losses) == (6, 1, 1)
    assert (pair.outcome, pair.reason, pair.n_planned, pair.n_paired) == ("better", None, 8, 8)


def test_a_worse_first_method_is_tested_in_the_other_direction(table):
    pair = only(table({"a": {"x": BASE}, "b": {"x": plus(1, 2, 3, 4, 5, 6, 7, 8)}}))
    assert (pair.outcome, pair.p_one_sided, pair.statistic) == ("worse", 2**-8, 0)


def test_every_pair_without_references_is_tested_in_every_scope(table):
    methods = ("a", "ref", "b", "c")
    found = rows(table({name: {"x": BASE, "y": BASE} for name in methods}))
    places = [(pair.scope, pair.target) for pair in found]
    assert (
        places
        == [("target", "x")] * 3 + [("target", "y")] * 3 + [("average", None)] * 3 + [("across_targets", None)] * 3
    )
    assert [(pair.first, pair.second) for pair in found[:3]] == [("a", "b"), ("a", "c"), ("b", "c")]


def test_holm_reproduces_published_values():
    assert holm([0.01, 0.02, 0.03, 0.04, 0.005]) == pytest.approx((0.04, 0.06, 0.06, 0.06, 0.025), rel=1e-12)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=7))
def test_holm_equals_the_closed_bonferroni_test(p_values: list[float]) -> None:
    indices = range(len(p_values))
    subsets = list(chain.from_iterable(combinations(indices, size) for size in range(1, len(p_values) + 1)))
    for index, adjusted in enumerate(holm(p_values)):
        closed = max(min(1.0, len(some) * min(p_values[i] for i in some)) for some in subsets if index in some)
        assert adjusted == pytest.approx(closed)


@given(st.lists(st.floats(0, 1), max_size=20))
def test_benjamini_hochberg_equals_scipys(p_values: list[float]) -> None:
    assert benjamini_hochberg(p_values) == false_discovery_control(p_values).tolist()


def test_holms_correction_is_within_a_target(table):
    runs = {
        "a": {"x": BASE, "y": BASE},
        "b": {"x": plus(1, 2, 3, 4, 5, 6, 7, 8), "y": BASE},
        "c": {"x": plus(1, -2, 3, -4, 5, -6, 7, -8), "y": plus(2, 1, 1, 1, 1, 1, 1, 1)},
    }
    found = rows(table(runs))
    for target in ("x", "y"):
        family = [pair for pair in found if pair.target == target]
        assert [pair.p_holm for pair in family] == holm([pair.p_two_sided for pair in family])
        assert [pair.p_bh for pair in family] == list(false_discovery_control([pair.p_two_sided for pair in family]))
        attainable = holm([min(1.0, 2 ** (1 + pair.n_zero - pair.n_paired)) for pair in family])
        assert [pair.attainable_p for pair in family] == attainable
        assert all(pair.attainable_p <= pair.p_holm for pair in family)


def test_the_average_pairs_seeds_that_both_methods_have_at_every_target(table):
    runs = {
        "a": {"x": [101, 105, 100, 100], "y": [100, 101, None, 100]},
        "b": {"x": [100, 100, 100, 100], "y": [100, 100, 100, "diverged"]},
    }
    pair = only(table(runs), "average")
    assert (pair.n_planned, pair.n_paired, pair.reason) == (4, 2, "incomplete")
    assert pair.mean_difference == (0.25 + 1.5) / 2


def test_across_targets_each_target_is_one_pair(table):
    targets = [f"t{i}" for i in range(6)]
    runs = {
        "a": {target: [100 + i + 1, 100 - 3 * i] for i, target in enumerate(targets)},
        "b": {target: [100, 100] for target in targets},
    }
    pair = only(table(runs), "across_targets")
    differences = [1 - 2 * i for i in range(6)]
    assert pair.p_two_sided == signed_rank(differences, "two-sided").p
    assert pair.mean_difference == sum(differences) / 6 / 4
    assert (pair.n_paired, pair.outcome, pair.reason) == (6, "unknown", "not significant")


def test_across_five_targets_nothing_is_significant_at_any_alpha(table):
    targets = [f"t{i}" for i in range(5)]
    runs = {"a": {t: [101 + i] for i, t in enumerate(targets)}, "b": {t: [100] for t in targets}}
    pair = only(table(runs, alpha=0.2), "across_targets")
    assert pair.p_holm == 0.0625
    assert (pair.outcome, pair.reason) == ("unknown", "too few pairs")


def test_a_missing_run_makes_across_targets_incomplete(table):
    targets = [f"t{i}" for i in range(6)]
    runs = {"a": {t: [101, 101] for t in targets}, "b": {t: [100, 100] for t in targets}}
    runs["b"]["t3"] = [100, None]
    pair = only(table(runs), "across_targets")
    assert (pair.n_paired, pair.n_planned, pair.outcome) == (6, 6, "better")
    del runs["a"]["t0"], runs["b"]["t0"]
    assert only(table(runs), "across_targets").reason == "incomplete"


@pytest.mark.parametrize(
    ("first", "outcome", "reason"),
    [
        (plus(1, 2, 3, 4, 5, 6, 7, 8), "better", None),
        (plus(-1, -2, -3, -4, -5, -6, -7, -8), "worse", None),
        (plus(1, -2, 3, -4, 5, -6, 7, -8), "unknown", "not significant"),
        (plus(0, 0, 0, 0, 0, 0, 0, 0), "same", None),
        (plus(1, 2, 3, 4, 5, 0, 0, 0), "unknown", "too few pairs"),
        (plus(1, 2, 3, 4, 5, 6, 0, 0), "better", None),
        ([*plus(1, 2, 3, 4, 5, 6, 7, 8)[:-1], None], "better", None),
        ([*plus(1, -2, 3, -4, 5, -6, 7, 8)[:-1], None], "unknown", "not significant"),
        ([*plus(1, 2, 3, 4, 5, 6, 7, 8)[:5], None, None, "diverged"], "unknown", "incomplete"),
        ([None] * 8, "unknown", "incomplete"),
    ],
)
def test_outcomes_are_as_documented(table, first, outcome, reason):
    pair = only(table({"a": {"x": first}, "b": {"x": BASE}}))
    assert (pair.outcome, pair.reason) == (outcome, reason)
    assert (pair.detectable is None) == (outcome == "same" or reason in {"too few pairs", "incomplete"})


def test_a_p_of_alpha_itself_is_significant(table):
    five = {"a": {"x": plus(1, 2, 3, 4, 5, 6, 7, 8)[:5]}, "b": {"x": BASE[:5]}}
    assert [only(table(five, alpha=alpha)).outcome for alpha in (0.0625, 0.0624)] == ["better", "unknown"]


def test_too_few_seeds_cannot_be_significant(table):
    pair = only(table({"a": {"x": [2, 3, 4, 5]}, "b": {"x": [1, 1, 1, 1]}}))
    assert (pair.reason, pair.attainable_p, pair.p_one_sided) == ("too few pairs", 0.125, 0.0625)


def test_without_pairs_there_is_no_effect(table):
    pair = only(table({"a": {"x": [1, None]}, "b": {"x": [None, 1]}}))
    assert (pair.n_paired, pair.mean_difference, pair.p_holm) == (0, None, None)


def test_one_method_alone_is_compared_with_nothing(table):
    assert rows(table({"a": {"x": [1]}, "ref": {"x": [1]}})) == []


LEADS = {"a": 0, "b": 1, "c": 2, "d": 3, "e": 4, "f": 5, "g": 6}


def many(count):
    """Methods that each beat all earlier ones at every one of eight seeds, by unequal steps."""
    names = [*LEADS][:count]
    return {name: {"x": [base + LEADS[name] * (seed + 1) for seed, base in enumerate(BASE)]} for name in names}


def test_up_to_six_methods_are_compared_in_pairs_and_more_with_the_baseline(table):
    six = rows(table(many(6), baseline="a"), "target")
    assert {pair.family for pair in six} == {"all_pairs"}
    assert [pair.p_holm for pair in six] == holm([pair.p_two_sided for pair in six])
    assert {pair.n_family for pair in six} == {15}
    seven = rows(table(many(7), baseline="a"), "target")
    with_a = [pair for pair in seven if "a" in {pair.first, pair.second}]
    assert {(pair.family, pair.control, pair.n_family) for pair in with_a} == {("against a", "a", 6)}
    assert [pair.p_holm for pair in with_a] == holm([pair.p_two_sided for pair in with_a])
    assert {pair.outcome for pair in with_a} == {"worse"}
    # 21 pairs of eight seeds cannot be significant, six comparisons with one method are.
    others = [pair for pair in seven if pair not in with_a]
    assert {(pair.family, pair.control, pair.n_family) for pair in others} == {("all_pairs", None, 21)}
    assert [pair.p_holm for pair in others] == [pytest.approx(21 * 2 / 256)] * 15
    assert {(pair.outcome, pair.reason) for pair in others} == {("unknown", "too few pairs")}


def test_a_suite_names_the_method_that_all_are_compared_with(table):
    found = rows(table(many(3), baseline="a", against="b"), "target")
    assert [pair.family for pair in found] == ["against b", "all_pairs", "against b"]
    assert [pair.p_holm for pair in found] == [pytest.approx(size * 2 / 256) for size in (2, 3, 2)]


def test_without_a_baseline_all_pairs_count_however_many(table):
    assert {pair.family for pair in rows(table(many(7)))} == {"all_pairs"}


def test_a_selection_of_runs_is_compared_like_a_whole_folder(table):
    runs = table({"a": {"x": plus(*range(8)), "y": BASE}, "b": {"x": BASE, "y": BASE}, "c": {"x": BASE, "y": BASE}})
    part = runs[(runs["method"] != "c") & (runs["seed"] < 6) & (runs["target"] == "x")]
    pair = only(part)
    assert (pair.first, pair.second, pair.n_planned, pair.n_paired) == ("a", "b", 6, 6)
    assert rows(part) == rows(table({"a": {"x": plus(*range(8))[:6]}, "b": {"x": BASE[:6]}}))
