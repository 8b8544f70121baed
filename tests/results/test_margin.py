"""Comparisons with a margin: the tests against it, what a method then is, and families of primary methods."""

import random
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import msda_bench as mb
from msda_bench.results.rows import against
from msda_bench.store.record import Outcome
from tests.results.conftest import frame_of, gained, holm, planned


def rows(gains, **options):
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
    _, compared = rows({"A": differences})
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
    table, compared = rows(FIVE, is_control_last=is_control_last)
    pairs = compared[compared["control"].notna()]
    assert (pairs["second" if is_control_last else "first"] == "SRC").all()
    assert {name: (row["standing"], row["outcome"]) for name, row in table.iterrows()} == STANDINGS
    others = compared[compared["control"].isna()]
    assert len(others)
    assert others[["standing", "margin", "p_beyond"]].isna().all(axis=None)


def test_the_family_corrects_the_tests_against_the_margin_too():
    _, compared = rows(FIVE)
    mine = compared[(compared["scope"] == "average") & compared["control"].notna()]
    for name in ("p_beyond", "p_equivalent"):
        assert mine[f"{name}_corrected"].tolist() == pytest.approx(holm(mine[name].tolist()))
    # Alone it is larger than the margin; among many that are not, this is not shown.
    gains = {"A": around(1.45, 0.75, 14)}
    noise = {f"N{place}": around(0, 4, 14, place) for place in range(12)}
    assert rows(gains)[0].loc["A", "standing"] == "better by more than the margin"
    assert rows(gains | noise)[0].loc["A", "standing"] == "better"


def test_too_few_pairs_leave_every_method_undecided():
    table, _ = rows({name: gains[:4] for name, gains in FIVE.items()})
    assert set(table["standing"]) == {"undecided"}
    table, _ = rows({"A": [0.0] * 12, "B": [0.0] * 12})
    assert table[["outcome", "standing"]].to_numpy().tolist() == [["same", "equivalent"]] * 2


def test_primary_methods_are_a_family_and_the_others_explore():
    middles = zip("ABCDEF", (1, 0.8, 0.2, 0.85, 0.85, 0.85), strict=True)
    gains = {name: around(middle, 1.0, 12) for name, middle in middles}
    table, compared = rows(gains, primary=("A", "B"), margin=None)
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
    experiment, cells, records = planned(
        {
            name: {"x": [Outcome(500, n_correct=round(5 * (50 + g))) for g in of]}
            for name, of in {"SRC": [0] * 10, "A": gains}.items()
        },
        against="SRC",
        margin=1.0,
    )

    def ends(**params):
        cell = {"dataset": {"params": params}, "target": "x"}
        made = {key: replace(record, cell=cell) for key, record in records.items()}
        return mb.compare(frame_of((experiment, cells, made))).query("scope == 'average'").iloc[0]

    row = ends(train=250)
    differences = -np.array([round(5 * (50 + gain)) / 5 - 50 for gain in gains])
    half = stats.t.ppf(0.975, 9) * np.sqrt((1 / 10 + 500 / 250) * differences.var(ddof=1))
    middle = differences.mean()
    assert [row["corrected_t_low"], row["corrected_t_high"]] == pytest.approx([middle - half, middle + half])
    by_domain = {"train": 30, "target_train": {"x": 250, "default": 3}}
    for same in (by_domain, {"train": 1 / 3}, {"train": 0.2, "test": 0.4}, {"train": 1 / 3, "test": 0.9}):
        assert ends(**same)["corrected_t_low"] == row["corrected_t_low"]
    for unknown in ({"train": "all"}, {"train": 0.5, "test": 500}, {"train": 250, "protocol": "transductive"}):
        assert np.isnan(ends(**unknown)["corrected_t_low"])
