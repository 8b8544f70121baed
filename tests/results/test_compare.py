"""Each pair of methods is tested seed by seed and decided once, in its family."""

import random

import pytest
from scipy.stats import false_discovery_control

import msda_bench as mb
from tests.results.conftest import BASE, UP, holm, many, plus

MIXED = (1, -2, 3, -4, 5, -6, 7, -8)


def rows(runs, scope=None):
    pairs = mb.compare(runs)
    pairs = pairs if scope is None else pairs[pairs["scope"] == scope]
    return list(pairs.astype(object).where(pairs.notna(), None).itertuples(index=False))


def only(runs, scope="target"):
    (pair,) = rows(runs, scope)
    return pair


def test_pairs_are_taken_seed_by_seed_in_percent(table):
    differences = [1, 2, 3, -1, 0, 5, 6, 2]
    runs = {"a": {"x": plus(*differences)}, "b": {"x": BASE}}
    ours, turned = only(table(runs)), only(table(dict(reversed(runs.items()))))
    test = mb.signed_rank(differences, "two-sided")
    for pair, sign in ((ours, 1), (turned, -1)):
        assert (pair.p_two_sided, pair.n_zero, pair.n_planned, pair.n_paired) == (test.p, 1, 8, 8)
        assert pair.p_one_sided == mb.signed_rank(differences, "greater").p
        assert (pair.median_difference, pair.mean_difference) == (sign * 1.0, sign * 18 / 16)
    assert (ours.statistic, turned.statistic) == (test.statistic, 28 - test.statistic)
    assert (ours.wins, ours.ties, ours.losses, ours.outcome) == (6, 1, 1, "better")
    assert (turned.wins, turned.ties, turned.losses, turned.outcome) == (1, 1, 6, "worse")
    # The ranks decide which method is better, not the mean.
    far = only(table({"a": {"x": [*range(101, 120), 0]}, "b": {"x": [100] * 19 + [200]}}))
    assert (far.mean_difference, far.outcome) == (-0.25, "better")


def test_p_values_are_corrected_within_each_place(table):
    assert holm([0.01, 0.02, 0.03, 0.04, 0.005]) == pytest.approx((0.04, 0.06, 0.06, 0.06, 0.025), rel=1e-12)
    draw = random.Random(0)
    runs = {name: {"x": [draw.randrange(90, 110) + 4 * (name == "d") for _ in BASE], "y": BASE} for name in "abcdef"}
    runs["f"]["y"] = plus(2, 1, 1, 1, 1, 1, 1, 1)
    pairs = rows(table(runs))
    for target in ("x", "y"):
        family = [pair for pair in pairs if pair.target == target]
        p_values = [pair.p_two_sided for pair in family]
        assert [pair.p_holm for pair in family] == pytest.approx(holm(p_values), rel=1e-12)
        assert [pair.p_bh for pair in family] == pytest.approx(false_discovery_control(p_values), rel=1e-12)
        attainable = holm([min(1.0, 2 ** (1 + pair.n_zero - pair.n_paired)) for pair in family])
        assert [pair.attainable_p for pair in family] == attainable
        assert all(pair.attainable_p <= pair.p_holm for pair in family)


def test_the_corrected_p_decides_and_not_the_p_of_the_pair_alone(table):
    runs = {"a": {"x": plus(1, -2, 3, 4, 5, 6, 7, 8)}, "b": {"x": BASE}, "c": {"x": plus(*MIXED)}}
    pair = rows(table(runs), "target")[0]
    assert (pair.p_two_sided, pair.p_holm) == pytest.approx((6 / 256, 18 / 256))
    assert (pair.attainable_p, pair.outcome, pair.reason) == (6 / 256, "unknown", "not significant")
    del runs["c"]
    assert only(table(runs)).outcome == "better"


def test_the_average_pairs_seeds_that_both_methods_have_at_every_target(table):
    runs = {
        "a": {"x": [101, 105, 100, 100], "y": [100, 101, None, 100]},
        "b": {"x": [100, 100, 100, 100], "y": [100, 100, 100, "diverged"]},
    }
    pair = only(table(runs), "average")
    assert (pair.n_planned, pair.n_paired, pair.reason) == (4, 2, "incomplete")
    assert pair.mean_difference == (0.25 + 1.5) / 2


@pytest.mark.parametrize(
    ("targets", "lost", "alpha", "outcome", "reason"),
    [
        (6, (), 0.05, "better", None),
        (6, (3,), 0.05, "better", None),
        (5, (), 0.2, "unknown", "too few pairs"),
        (5, (3,), 0.2, "unknown", "incomplete"),
    ],
)
def test_across_targets_each_target_is_one_pair_and_five_show_nothing(table, targets, lost, alpha, outcome, reason):
    runs = {
        "a": {f"t{i}": [100 + i + 1, 100 + 3 * i] for i in range(targets)},
        "b": {f"t{i}": [100, None if i in lost else 100] for i in range(targets)},
    }
    pair = only(table(runs, alpha=alpha), "across_targets")
    assert (pair.n_paired, pair.outcome, pair.reason, pair.p_holm) == (targets, outcome, reason, 2 ** (1 - targets))
    steps = [i + 1 if i in lost else (4 * i + 1) / 2 for i in range(targets)]
    assert pair.mean_difference == pytest.approx(sum(steps) / targets / 2)


@pytest.mark.parametrize(
    ("first", "outcome", "reason"),
    [
        (plus(*UP), "better", None),
        (plus(*(-step for step in UP)), "worse", None),
        (plus(*MIXED), "unknown", "not significant"),
        (plus(*[0] * 8), "same", None),
        (plus(*UP[:5], 0, 0, 0), "unknown", "too few pairs"),
        (plus(*UP[:6], 0, 0), "better", None),
        ([*plus(*UP[:7]), None], "better", None),
        ([*plus(1, -2, 3, -4, 5, -6, 7), None], "unknown", "not significant"),
        ([*plus(*UP[:5]), None, None, "diverged"], "unknown", "incomplete"),
        ([None] * 8, "unknown", "incomplete"),
    ],
)
def test_outcomes_are_as_documented(table, first, outcome, reason):
    pair = only(table({"a": {"x": first}, "b": {"x": BASE}}))
    assert (pair.outcome, pair.reason) == (outcome, reason)
    assert (pair.detectable is None) == (outcome == "same" or reason in {"too few pairs", "incomplete"})
    assert (pair.mean_difference is None) == (pair.p_holm is None) == (pair.n_paired == 0)


@pytest.mark.parametrize(
    ("seeds", "alpha", "outcome", "reason"),
    [(5, 0.0625, "better", None), (5, 0.0624, "unknown", "too few pairs"), (4, 0.124, "unknown", "too few pairs")],
)
def test_a_p_of_alpha_itself_is_significant(table, seeds, alpha, outcome, reason):
    pair = only(table({"a": {"x": plus(*UP[:seeds])}, "b": {"x": BASE[:seeds]}}, alpha=alpha))
    assert (pair.outcome, pair.reason, pair.attainable_p) == (outcome, reason, 2 ** (1 - seeds))


def test_up_to_six_methods_are_compared_in_pairs_and_more_with_the_baseline(table):
    six = rows(table(many(6), baseline="a"), "target")
    assert {(pair.family, pair.n_family) for pair in six} == {("all_pairs", 15)}
    assert [pair.p_holm for pair in six] == holm([pair.p_two_sided for pair in six])
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
    named = rows(table(many(3), baseline="a", against="b"), "target")
    assert [pair.family for pair in named] == ["against b", "all_pairs", "against b"]
    assert [pair.p_holm for pair in named] == [pytest.approx(size * 2 / 256) for size in (2, 3, 2)]
    assert {pair.family for pair in rows(table(many(7)))} == {"all_pairs"}
