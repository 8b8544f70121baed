"""Each pair of methods is tested seed by seed and decided once, in its family."""

import numpy as np
import pytest
from scipy import stats

import msda_bench as mb
from msda_bench.store.record import Outcome
from tests.results.conftest import BASE, UP, frame_of, holm, many, planned, plus, with_cells

MIXED = (1, -2, 3, -4, 5, -6, 7, -8)


def rows(runs, scope=None):
    pairs = mb.compare(runs)
    pairs = pairs if scope is None else pairs[pairs["scope"] == scope]
    return list(pairs.astype(object).where(pairs.notna(), None).itertuples(index=False))


def only(runs, scope="target"):
    (pair,) = rows(runs, scope)
    return pair


def test_the_ranks_decide_which_method_is_better_not_the_mean(table):
    far = only(table({"a": {"x": [*range(101, 120), 0]}, "b": {"x": [100] * 19 + [200]}}))
    assert (far.mean_difference, far.outcome) == (-0.25, "better")


@pytest.mark.parametrize(
    ("first", "alpha", "outcome", "reason"),
    [
        (plus(*UP), 0.05, "better", None),
        (plus(*(-step for step in UP)), 0.05, "worse", None),
        (plus(*MIXED), 0.05, "unknown", "not significant"),
        (plus(*[0] * 8), 0.05, "same", None),
        (plus(*UP[:5], 0, 0, 0), 0.05, "unknown", "too few pairs"),
        (plus(*UP[:6], 0, 0), 0.05, "better", None),
        ([*plus(*UP[:7]), None], 0.05, "better", None),
        ([*plus(1, -2, 3, -4, 5, -6, 7), None], 0.05, "unknown", "not significant"),
        ([*plus(*UP[:5]), None, None, "diverged"], 0.05, "unknown", "incomplete"),
        ([None] * 8, 0.05, "unknown", "incomplete"),
        # A p of alpha itself is significant.
        (plus(*UP[:5]), 0.0625, "better", None),
        (plus(*UP[:5]), 0.0624, "unknown", "too few pairs"),
        (plus(*UP[:4]), 0.124, "unknown", "too few pairs"),
    ],
)
def test_outcomes_are_as_documented(table, first, alpha, outcome, reason):
    pair = only(table({"a": {"x": first}, "b": {"x": BASE[: len(first)]}}, alpha=alpha))
    assert (pair.outcome, pair.reason) == (outcome, reason)
    assert (pair.detectable is None) == (outcome == "same" or reason in {"too few pairs", "incomplete"})
    assert (pair.mean_difference is None) == (pair.p_holm is None) == (pair.n_paired == 0)


def test_all_pairs_of_up_to_six_methods_are_compared_and_more_with_the_baseline_and_the_best(table):
    six = rows(table(many(6), baseline="a"), "target")
    assert {(pair.family, pair.n_family) for pair in six} == {("all pairs", 15)}
    assert [pair.p_holm for pair in six] == holm([pair.p for pair in six])
    seven = rows(table(many(7), baseline="b"), "target")
    for family, others in (("b", "acdefg"), ("g", "acdef")):
        pairs = [pair for pair in seven if pair.family == f"against {family}"]
        assert [{pair.first, pair.second} for pair in pairs] == [{family, other} for other in others]
        assert {pair.n_family for pair in pairs} == {len(others)}
        assert [pair.p_holm for pair in pairs] == holm([pair.p for pair in pairs])
        assert all(pair.outcome in {"better", "worse"} for pair in pairs)
    assert len(seven) == 11
    # A baseline that is the best itself has one family.
    assert {pair.family for pair in rows(table(many(7), baseline="g"), "target")} == {"against g"}
    every = rows(table(many(7), baseline="b", pairs="all"), "target")
    assert {(pair.family, pair.n_family) for pair in every} == {("all pairs", 21)}
    assert {(pair.outcome, pair.reason) for pair in every} == {("unknown", "too few pairs")}  # 21 tests of eight seeds
    named = rows(table(many(3), baseline="b", pairs="baseline"), "target")
    assert [(pair.first, pair.second, pair.family) for pair in named] == [
        ("a", "b", "against b"),
        ("b", "c", "against b"),
        ("a", "c", "against c"),
    ]
    assert {pair.family for pair in rows(table(many(7)))} == {"all pairs"}


def test_the_interval_for_overlapping_splits_has_nadeaus_and_bengios_correction():
    gains = np.random.default_rng(0).normal(5, 5, 10).round()
    runs = {"SRC": {"x": [Outcome(500, 250)] * 10}, "A": {"x": [Outcome(500, 250 + int(gain)) for gain in gains]}}
    part = planned(runs, baseline="SRC", pairs="baseline")

    def ends(**params):
        cell = {"dataset": {"params": params}, "target": "x"}
        row = mb.compare(frame_of(with_cells(part, lambda _: cell))).query("scope == 'average'").iloc[0]
        return row[["difference_low", "difference_high"]].tolist()

    differences = -gains / 5
    middle = differences.mean()
    half = stats.t.ppf(0.975, 9) * np.sqrt((1 / 10 + 500 / 250) * differences.var(ddof=1))
    found = ends(train=250)
    assert found == pytest.approx([middle - half, middle + half])
    by_domain = {"train": 30, "target_train": {"x": 250, "default": 3}}
    for same in (by_domain, {"train": 1 / 3}, {"train": 0.2, "test": 0.4}, {"train": 1 / 3, "test": 0.9}):
        assert ends(**same) == found
    for unknown in ({"train": "all"}, {"train": 0.5, "test": 500}, {"train": 250, "protocol": "transductive"}):
        assert ends(**unknown)[0] == pytest.approx(middle - half / np.sqrt(1 + 10 * 2))
