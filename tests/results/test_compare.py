"""Each pair of methods is tested seed by seed and decided once, in its family."""

import random

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


@pytest.mark.parametrize("lost", [(), (3,)])
def test_across_targets_each_target_is_one_pair(table, lost):
    runs = {
        "a": {f"t{i}": [100 + i + 1, 100 + 3 * i] for i in range(6)},
        "b": {f"t{i}": [100, None if i in lost else 100] for i in range(6)},
    }
    pair = only(table(runs), "across_targets")
    assert (pair.n_paired, pair.outcome, pair.reason, pair.p_holm) == (6, "better", None, 2 ** (1 - 6))
    steps = [i + 1 if i in lost else (4 * i + 1) / 2 for i in range(6)]
    assert pair.mean_difference == pytest.approx(sum(steps) / 6 / 2)
    five = {name: {target: of[target] for target in [*of][:5]} for name, of in runs.items()}
    pair = only(table(five, alpha=0.2), "across_targets")
    assert (pair.n_paired, pair.outcome, pair.reason) == (5, "unknown", "incomplete" if lost else "too few pairs")


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
    named = rows(table(many(3), baseline="b", pairs="baseline"), "target")
    assert [pair.family for pair in named] == ["against b", "all_pairs", "against b"]
    assert [pair.p_holm for pair in named] == [pytest.approx(size * 2 / 256) for size in (2, 3, 2)]
    assert {pair.family for pair in rows(table(many(7)))} == {"all_pairs"}


def around(middle, width=0.5, n=20, seed=1):
    draw = random.Random(f"{middle} {seed}")
    noise = [draw.gauss(0, 1) for _ in range(n)]
    mean, spread = np.mean(noise), np.std(noise)
    return [round(middle + width * (value - mean) / spread, 4) for value in noise]


def test_the_interval_for_overlapping_splits_has_nadeaus_and_bengios_correction():
    gains = around(1, 1.0, 10)
    part = planned(
        {
            name: {"x": [Outcome(500, n_correct=round(5 * (50 + g))) for g in of]}
            for name, of in {"SRC": [0] * 10, "A": gains}.items()
        },
        baseline="SRC",
        pairs="baseline",
    )

    def ends(**params):
        cell = {"dataset": {"params": params}, "target": "x"}
        return mb.compare(frame_of(with_cells(part, lambda _: cell))).query("scope == 'average'").iloc[0]

    row = ends(train=250)
    differences = -np.array([round(5 * (50 + gain)) / 5 - 50 for gain in gains])
    half = stats.t.ppf(0.975, 9) * np.sqrt((1 / 10 + 500 / 250) * differences.var(ddof=1))
    middle = differences.mean()
    assert [row["difference_low"], row["difference_high"]] == pytest.approx([middle - half, middle + half])
    by_domain = {"train": 30, "target_train": {"x": 250, "default": 3}}
    for same in (by_domain, {"train": 1 / 3}, {"train": 0.2, "test": 0.4}, {"train": 1 / 3, "test": 0.9}):
        assert ends(**same)["difference_low"] == row["difference_low"]
    for unknown in ({"train": "all"}, {"train": 0.5, "test": 500}, {"train": 250, "protocol": "transductive"}):
        assert ends(**unknown)["difference_low"] == pytest.approx(middle - half / np.sqrt(1 + 10 * 2))
