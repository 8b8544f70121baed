"""Means, sizes of differences with their intervals, and the smallest difference that the tests find."""

import math
import random
import statistics
from itertools import combinations_with_replacement

import numpy as np
import pytest

import msda_bench as mb
from msda_bench.store.record import Outcome

N_TEST = 10**6


def detectable(seeds, comparisons, table):
    """The smallest detectable difference, in standard deviations, of so many methods against a baseline."""
    draw = np.random.default_rng(seeds)
    runs = {
        f"m{name}": {"x": [Outcome(N_TEST, n_correct=n) for n in draw.integers(400_000, 600_000, seeds).tolist()]}
        for name in range(comparisons + 1)
    }
    pairs = mb.compare(table(runs, baseline="m0", against="m0"))
    mine = pairs[(pairs["scope"] == "average") & pairs["control"].notna()]
    sizes = mine["detectable"] / mine["standard_deviation"]
    assert len(mine) == comparisons
    assert sizes.max() == pytest.approx(sizes.min())
    return sizes.iloc[0]


@pytest.mark.parametrize(("seeds", "comparisons"), [(6, 1), (10, 23), (20, 3), (50, 8)])
def test_a_true_difference_of_this_size_is_found_with_80_percent(seeds, comparisons, table):
    draws = np.random.default_rng(7).normal(detectable(seeds, comparisons, table), 1, (3000, seeds))
    # Alone among the comparisons in being real: Holm's first step, alpha over all of them.
    shown = [mb.signed_rank(differences, "two-sided").p <= 0.05 / comparisons for differences in draws.tolist()]
    assert np.mean(shown) == pytest.approx(0.8, abs=0.03)  # four standard errors


def test_too_few_seeds_detect_nothing_and_equal_results_have_no_size(table):
    rise, noise = [1, 2, 3, 4, 5, 6, 7, 8], [3, 1, 4, 1, 5, 9, 2, 6]
    runs = {"a": {"x": rise}, "twin": {"x": rise}, "b": {"x": noise}}
    pairs = mb.compare(table(runs)).query("scope == 'target'").set_index(["first", "second"])
    assert pairs["detectable"].notna().tolist() == [False, True, True]
    few = {name: {"x": of_method["x"][:5]} for name, of_method in runs.items()}
    assert mb.compare(table(few))["detectable"].isna().all()


def test_means_and_their_standard_errors(table):
    """In any order, for one run and for none, and for squares beyond a float's range."""
    draw = random.Random(1)
    for scores in ([1e300, 3e300], [0.1] * 7, [draw.uniform(0, 9) for _ in range(12)]):
        first, second = (
            mb.leaderboard(table({"a": {"x": turned}}, task="regression")).iloc[0] for turned in (scores, scores[::-1])
        )
        error = np.std([score / max(scores) for score in scores], ddof=1) * max(scores) / math.sqrt(len(scores))
        assert first["mean"] == second["mean"] == pytest.approx(statistics.fmean(scores))
        assert first["standard_error"] == second["standard_error"] == pytest.approx(error, abs=1e-300)
    board = mb.leaderboard(table({"a": {"x": [7, None]}, "b": {"x": [None] * 2}}))
    assert board["mean"].iloc[:2].tolist() == pytest.approx([3.5, math.nan], nan_ok=True)
    assert board["standard_error"].isna().all()


def size(table, differences, **options):
    """The comparison of two methods with these differences in points."""
    runs = {"a": [Outcome(N_TEST, n_correct=500_000 + round(10_000 * d)) for d in differences]}
    runs["b"] = [Outcome(N_TEST, n_correct=500_000)] * len(differences)
    return mb.compare(table({name: {"x": of_method} for name, of_method in runs.items()}, **options)).iloc[0]


def test_hollander_and_wolfes_example_has_their_estimate_and_interval(table):
    """Example 3.1, depression factors."""
    row = size(table, [0.952, -0.147, 1.022, 0.430, 0.620, 0.590, 0.490, -0.080, 0.010], alpha=0.04)
    assert (row["hodges_lehmann"], row["hl_low"], row["hl_high"]) == (0.46, 0.01, 0.786)
    assert (row["median_difference"], row["wins"], row["ties"], row["losses"]) == (0.49, 7, 0, 2)


CUTS = {1: 0, 4: 0, 5: 0, 6: 1, 7: 3, 8: 4, 9: 6, 10: 9, 12: 14, 15: 26, 20: 53, 25: 90, 600: None}
"""One more than the tabled two-sided 5 % critical value; beyond tables, the normal approximation."""


@pytest.mark.parametrize(("n", "cut"), CUTS.items())
def test_the_estimate_is_a_median_of_walsh_averages_and_the_interval_excludes_as_many_as_tables_say(table, n, cut):
    draw = random.Random(n)
    differences = [draw.randrange(-200_000, 300_000) / 10_000 for _ in range(n)]
    row, turned = (size(table, values).replace({None: math.nan}) for values in (differences, [-d for d in differences]))
    walsh = np.sort([(first + second) / 2 for first, second in combinations_with_replacement(differences, 2)])
    assert row["hodges_lehmann"] == pytest.approx(np.median(walsh), abs=1e-9) == -turned["hodges_lehmann"]
    if cut is None:
        cut = round(n * (n + 1) / 4 - 1.96 * math.sqrt(n * (n + 1) * (2 * n + 1) / 24))
        beyond = [(walsh < row["hl_low"] - 1e-9).sum(), (walsh > row["hl_high"] + 1e-9).sum()]
        assert beyond == pytest.approx([cut, cut], rel=3e-4)
        return
    ends = [walsh[cut - 1], walsh[-cut]] if cut else [math.nan] * 2
    assert [row["hl_low"], row["hl_high"]] == pytest.approx(ends, abs=1e-9, nan_ok=True)
    assert [-turned["hl_high"], -turned["hl_low"]] == pytest.approx(ends, abs=1e-9, nan_ok=True)
    means = [row["mean_difference"], row["median_difference"]]
    assert means == pytest.approx([statistics.fmean(differences), statistics.median(differences)], abs=1e-9)
    spread = statistics.stdev(differences) if n > 1 else math.nan
    assert row["standard_deviation"] == pytest.approx(spread, nan_ok=True)
