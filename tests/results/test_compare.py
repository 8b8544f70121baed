"""Each pair of methods is tested seed by seed and decided once, in its family; what a margin adds."""

import random

import numpy as np
import pytest
from scipy import stats

import msda_bench as mb
from msda_bench.results.compare import against
from msda_bench.store.record import Outcome
from tests.results.conftest import BASE, UP, frame_of, gained, holm, many, planned, plus, with_cells

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
    named = rows(table(many(3), baseline="a", against="b"), "target")
    assert [pair.family for pair in named] == ["against b", "all_pairs", "against b"]
    assert [pair.p_holm for pair in named] == [pytest.approx(size * 2 / 256) for size in (2, 3, 2)]
    assert {pair.family for pair in rows(table(many(7)))} == {"all_pairs"}


def with_src(gains, **options):
    """The comparisons with SRC over the seeds, by method."""
    compared = mb.compare(gained(gains, **{"margin": 1.0} | options))
    return against(compared[compared["scope"] == "average"], "SRC").set_index("method"), compared


def around(middle, width=0.5, n=20, seed=1):
    draw = random.Random(f"{middle} {seed}")
    noise = [draw.gauss(0, 1) for _ in range(n)]
    mean, spread = np.mean(noise), np.std(noise)
    return [round(middle + width * (value - mean) / spread, 4) for value in noise]


def shifted(differences, margin):
    """The p-values by scipy: of twice the smaller tail beyond the margin, and of the larger one within."""
    values = np.array(differences)

    def above(values):
        return stats.wilcoxon(values, alternative="greater", method="exact").pvalue

    return min(1, 2 * min(above(values - margin), above(-values - margin))), max(
        above(values + margin), above(margin - values)
    )


@pytest.mark.parametrize("middle", [-1.9, -0.6, 0.1, 0.8, 1.3])
def test_both_tests_against_the_margin_are_those_of_shifted_differences(middle):
    differences = around(middle, 1.0, 14)
    _, compared = with_src({"A": differences})
    row = compared[compared["scope"] == "average"].iloc[0]
    assert (row["p_beyond"], row["p_equivalent"]) == pytest.approx(shifted(differences, 1.0))


FIVE = {
    "large": around(2),
    "small": around(0.3, 0.2),
    "some": around(1.0),
    "loss": around(-1.2),
    "noise": around(0.5, 4),
}
STANDINGS = {
    "large": ("better by more than the margin", "better"),
    "small": ("equivalent", "better"),  # by less than the margin, which says what matters
    "some": ("better", "better"),
    "loss": ("worse", "worse"),
    "noise": ("undecided", "unknown"),
}


@pytest.mark.parametrize("is_control_last", [False, True])
def test_a_method_is_one_of_five_things_whichever_of_the_pair_is_first(is_control_last):
    table, compared = with_src(FIVE, is_control_last=is_control_last)
    pairs = compared[compared["control"].notna()]
    assert (pairs["second" if is_control_last else "first"] == "SRC").all()
    assert {name: (row["standing"], row["outcome"]) for name, row in table.iterrows()} == STANDINGS
    others = compared[compared["control"].isna()]
    assert len(others)
    assert others[["standing", "margin", "p_beyond"]].isna().all(axis=None)


def test_the_family_corrects_the_tests_against_the_margin_too():
    _, compared = with_src(FIVE)
    mine = compared[(compared["scope"] == "average") & compared["control"].notna()]
    for name in ("p_beyond", "p_equivalent"):
        assert mine[f"{name}_corrected"].tolist() == pytest.approx(holm(mine[name].tolist()))
    # Alone it is larger than the margin; among many that are not, this is not shown.
    gains = {"A": around(1.45, 0.75, 14)}
    noise = {f"N{place}": around(0, 4, 14, place) for place in range(12)}
    assert with_src(gains)[0].loc["A", "standing"] == "better by more than the margin"
    assert with_src(gains | noise)[0].loc["A", "standing"] == "better"
    few, _ = with_src({name: gains[:4] for name, gains in FIVE.items()})
    assert set(few["standing"]) == {"undecided"}
    equal, _ = with_src({"A": [0.0] * 12, "B": [0.0] * 12})
    assert equal[["outcome", "standing"]].to_numpy().tolist() == [["same", "equivalent"]] * 2


def test_primary_methods_are_a_family_and_the_others_explore():
    middles = zip("ABCDEF", (1, 0.8, 0.2, 0.85, 0.85, 0.85), strict=True)
    gains = {name: around(middle, 1.0, 12) for name, middle in middles}
    table, compared = with_src(gains, primary=("A", "B"), margin=None)
    mine = compared[(compared["scope"] == "average") & compared["control"].notna()].set_index("second")
    assert mine["family"].tolist() == ["primary against SRC"] * 2 + ["exploratory against SRC"] * 4
    assert mine["n_family"].tolist() == [2, 2, 4, 4, 4, 4]
    raw = mine["p_two_sided"]
    expected = [*holm(raw[:2].tolist()), *stats.false_discovery_control(raw[2:])]
    assert table["p"].tolist() == mine["p_corrected"].tolist() == pytest.approx(expected)
    assert (mine["outcome"] == "worse").tolist() == [p <= 0.05 for p in expected]
    assert mine["standing"].isna().all()
    # Holm's correction would not show all that explores.
    assert (mine["p_holm"] <= 0.05).sum() < (mine["p_corrected"] <= 0.05).sum()


def test_the_interval_for_overlapping_splits_has_nadeaus_and_bengios_correction():
    gains = around(1, 1.0, 10)
    part = planned(
        {
            name: {"x": [Outcome(500, n_correct=round(5 * (50 + g))) for g in of]}
            for name, of in {"SRC": [0] * 10, "A": gains}.items()
        },
        against="SRC",
        margin=1.0,
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
