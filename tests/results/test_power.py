"""The smallest detectable difference is one that the tests find with a probability of about 80 %."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import msda_bench as mb
from msda_bench.store.record import Outcome

RECORDED = Path(__file__).parents[2] / "results" / "leaderboard" / "comparisons.csv"
N_TEST = 10**6


def spread(seeds, comparisons, table):
    """The smallest detectable difference, in standard deviations, of so many methods against a baseline."""
    draw = np.random.default_rng(seeds)
    runs = {name: {"x": draw.integers(400_000, 600_000, seeds).tolist()} for name in range(comparisons + 1)}
    scores = {f"m{name}": {"x": [Outcome(N_TEST, n_correct=n) for n in own["x"]]} for name, own in runs.items()}
    pairs = mb.compare(table(scores, baseline="m0", against="m0"))
    mine = pairs[(pairs["scope"] == "average") & pairs["control"].notna()]
    assert len(mine) == comparisons
    sizes = mine["detectable"] / mine["standard_deviation"]
    assert sizes.max() == pytest.approx(sizes.min())
    return sizes.iloc[0]


@pytest.mark.parametrize(("seeds", "comparisons"), [(6, 1), (10, 23), (20, 3), (30, 23), (50, 8)])
def test_a_true_difference_of_this_size_is_found_with_80_percent(seeds, comparisons, table):
    size = spread(seeds, comparisons, table)
    draws = np.random.default_rng(7).normal(size, 1, (3000, seeds))
    # Alone among the comparisons in being real: Holm's first step, alpha over all of them.
    found = [mb.signed_rank(differences, "two-sided").p <= 0.05 / comparisons for differences in draws.tolist()]
    assert np.mean(found) == pytest.approx(0.8, abs=0.03)  # four standard errors


@pytest.mark.parametrize(("seeds", "share"), [(20, 2.4 / 4.4), (30, 1.9 / 4.4), (50, 1.4 / 4.4)])
def test_more_seeds_detect_what_the_audit_found(seeds, share, table):
    """Of opinions: 4.4 points with 10 seeds, 2.4, 1.9 and 1.4 with more."""
    assert spread(seeds, 23, table) / spread(10, 23, table) == pytest.approx(share, rel=0.1)


def test_too_few_seeds_detect_nothing_and_equal_results_have_no_size(table):
    rise, noise = [1, 2, 3, 4, 5, 6, 7, 8], [3, 1, 4, 1, 5, 9, 2, 6]
    runs = {"a": {"x": rise}, "twin": {"x": rise}, "b": {"x": noise}}
    pairs = mb.compare(table(runs)).query("scope == 'target'").set_index(["first", "second"])
    assert pairs["detectable"].notna().tolist() == [False, True, True]
    few = {name: {"x": own["x"][:5]} for name, own in runs.items()}
    assert mb.compare(table(few))["detectable"].isna().all()


@pytest.mark.parametrize(
    ("experiment", "points"),
    [("amazon", 2.1), ("opinions", 4.4), ("fonts", 4.6), ("pacs", 6.8), ("digits", 8.4)],
)
def test_the_recorded_leaderboard_could_find_what_an_audit_found(experiment, points):
    """The audit resampled the recorded differences; for normal ones the sizes are within a fifth of its figures."""
    rows = pd.read_csv(RECORDED).query("experiment == @experiment + '-small' and scope == 'average'")
    assert rows["detectable"][rows["control"] == "SRC"].median() == pytest.approx(points, rel=0.2)
