"""The mean gain over several data sets, against other implementations and by simulation."""

import numpy as np
import pytest
from scipy import stats

import msda_bench as mb
from msda_bench.results.across import across_of
from msda_bench.results.estimates import MeanGain
from msda_bench.results.verdict import verdict_across
from tests.results.conftest import gained

MORE = {"margin": 1.0, "primary": ("A", "B")}


def drawn(middles, seed=0, spread=1.0, seeds=6):
    """Gains of each method by experiment."""
    draw = np.random.default_rng(seed)
    return [
        {name: np.round(draw.normal(of[place], spread, seeds), 4).tolist() for name, of in middles.items()}
        for place in range(len(next(iter(middles.values()))))
    ]


def test_the_mean_gain_has_welchs_test():
    gains = drawn({"A": (0.9, 0.4), "B": (0.0, 0.1)})
    row = mb.across(gained(*gains, **MORE)).set_index("method").loc["A"]
    first, second = (np.array(of["A"]) for of in gains)
    # The mean of both is half of their difference, one negated.
    welch = stats.ttest_ind(first, -second, equal_var=False)
    assert row["p_two_sided"] == pytest.approx(welch.pvalue)
    ends = welch.confidence_interval(0.95)
    assert [row["mean_gain_low"], row["mean_gain_high"]] == pytest.approx([ends.low / 2, ends.high / 2])
    above, below = (
        stats.ttest_ind(first, -second + 2 * shift, equal_var=False, alternative=side).pvalue
        for shift, side in ((-1, "greater"), (1, "less"))
    )
    assert row["p_equivalent"] == pytest.approx(max(above, below))
    assert row["p_beyond"] == 1.0
    beyond = stats.ttest_ind(first, -second + 2 * 0.2, equal_var=False, alternative="greater").pvalue
    narrow = mb.across(gained(*gains, **MORE | {"margin": 0.2})).set_index("method").loc["A"]
    assert 1 > narrow["p_beyond"] == pytest.approx(2 * beyond)


def test_a_task_without_headroom_is_named_and_leaves_what_is_said_across():
    gains = drawn({"A": (2.0, 3.0, 4.0), "ref": (10.0, 0.1, 12.0), "B": (0, 0, 0)})
    runs, rest = gained(*gains, headroom="ref", **MORE), gained(gains[0], gains[2], **MORE)
    comparison = across_of(runs)
    assert comparison.experiments == ("e0", "e2")
    assert comparison.skipped == ("e1: no headroom, since ref is not shown to gain over SRC",)
    assert mb.across(runs)["mean_gain"].equals(mb.across(rest)["mean_gain"])
    assert len(across_of(gained(*gains, **MORE)).experiments) == 3
    board = mb.leaderboard(runs)
    assert "e1" in set(board["experiment"])
    without = runs[(runs["method"] != "ref").to_numpy()]  # unknown, so that all count
    assert len(across_of(without).experiments) == 3


def test_families_standings_and_columns_follow_the_suite():
    gains = drawn({"A": (3, 4, 3), "B": (0.1, 0, 0), "C": (-3, -2, -3), "D": (0, 0, 0)}, 2, 0.5, 10)
    gains = [of | {"D": (np.array(of["D"]) * 9).tolist()} for of in gains]
    table = mb.across(gained(*gains, **MORE)).set_index("method")
    assert table["standing"].dropna().to_dict() == {
        "A": "better by more than the margin",
        "B": "equivalent",
        "C": "worse",
        "D": "undecided",
    }
    assert table["family"].dropna().to_dict() == dict.fromkeys("AB", "primary against SRC") | dict.fromkeys(
        "CD", "exploratory against SRC"
    )
    assert table.loc["A", "standing:e0"] == "better by more than the margin"
    assert "standing" not in mb.across(gained(*gains))
    said = verdict_across(across_of(gained(*gains, **MORE)))
    assert said[0].startswith("1 of 4 methods gains over SRC in the mean over 3 datasets, by more than 1 point: A +3.")
    kinds = ("Within 1 point of SRC: B ", "Worse than SRC: C ", "Not shown to differ from SRC: D ")
    assert [sum(line.startswith(kind) for line in said) for kind in kinds] == [1, 1, 1]


@pytest.mark.parametrize("times", [300, pytest.param(5000, marks=pytest.mark.nightly)])
def test_intervals_cover_and_the_detectable_gain_is_found(times):
    draw, spreads, n = np.random.default_rng(3), np.array([0.5, 1.0, 3.0, 2.0]), 10
    size = MeanGain.of([(0.0, spread / np.sqrt(n), n) for spread in spreads]).detectable(0.05)
    covered = found = 0
    for _ in range(times):
        values = draw.normal(size, spreads, (n, 4))
        gains, errors = values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(n)
        mean = MeanGain.of([*zip(gains, errors, [n] * 4, strict=True)])
        covered += abs(mean.mean - size) <= mean.half_width(0.05)
        found += mean.tests(None)["p_two_sided"] <= 0.05 and mean.mean > 0
    slack = 3 / np.sqrt(times)
    assert covered / times == pytest.approx(0.95, abs=0.01 + 0.22 * slack)
    assert found / times == pytest.approx(0.8, abs=0.02 + 0.4 * slack)
