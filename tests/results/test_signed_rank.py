"""The exact test and the sizes of differences: published references, all signs counted, tables, simulation."""

import math
import random
import statistics
from decimal import Decimal
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

import msda_bench as mb
from msda_bench import signed_rank
from msda_bench.errors import BenchError
from msda_bench.store.record import Outcome
from tests.results.conftest import gained

MAIZE = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]


@pytest.mark.parametrize(
    ("differences", "statistic", "n_zero", "p_by_alternative"),
    [
        *((range(1, n + 1), n * (n + 1) / 2, 0, {"greater": 0.5**n}) for n in (4, 5, 6, 8, 10, 20, 1000)),
        (MAIZE, 96, 0, {"greater": 0.0206298828125, "less": 0.982330322265625, "two-sided": 0.041259765625}),
        ([0, 0.0, Fraction(0)], 0, 3, {"greater": 1, "less": 1, "two-sided": 1}),
        ([], 0, 0, {"greater": 1}),
        # Any kind of number; five tied at rank 3.
        ([np.int64(2), 2.0, Fraction(2), Decimal(2), -np.float32(2), 3], 4 * 3 + 6, 0, {"greater": 6 / 64}),
    ],
)
def test_published_values_are_met_to_the_last_bit(differences, statistic, n_zero, p_by_alternative):
    differences = [*differences]
    for alternative, p in p_by_alternative.items():
        test = signed_rank(differences, alternative)
        assert (test.p, test.statistic, test.n, test.n_zero) == (p, statistic, len(differences) - n_zero, n_zero)


@pytest.mark.parametrize(
    ("differences", "alternative", "error", "line"),
    [
        *(([1.0, bad], "less", ValueError, "not a finite number") for bad in (math.nan, -math.inf, np.float32("nan"))),
        (["1.0"], "greater", TypeError, "differences: must be numbers, not text"),
        (np.ones((2, 2)), "greater", TypeError, "one number per pair, not an array of several dimensions"),
        ([1], "both", ValueError, "alternative: must be 'greater', 'less' or 'two-sided', not 'both'"),
    ],
)
def test_what_cannot_be_tested_is_refused(differences, alternative, error, line):
    with pytest.raises(error, match=line):
        signed_rank(differences, alternative)


def test_scores_that_are_equal_as_fractions_tie(table):
    """1/3 - 1/6 and 1/2 - 1/3 are equal, their floats are not; so are the means over targets of unequal sizes."""
    assert 100 / 3 - 100 / 6 != 100 / 2 - 100 / 3
    runs = {}
    for name, correct in {"a": [2, 3] * 3 + [2, 1], "b": [1, 2] * 4}.items():
        runs[name] = {"x": [Outcome(6, n) for n in correct], "y": [Outcome(42, 7 * n) for n in correct]}
    for row in mb.compare(table(runs)).itertuples():
        assert row.p == 2 * (1 + 8) / 2**8  # one of eight equal ranks is negative


@given(st.lists(st.integers(-6, 6), max_size=10), st.randoms(use_true_random=False))
def test_every_p_is_a_count_over_all_signs_in_any_unit_and_order(differences, draw):
    ranked = [number for number in differences if number]
    ranks = scipy.stats.rankdata(np.abs(ranked)) if ranked else np.zeros(0)
    observed = ranks[np.array(ranked) > 0].sum() if ranked else 0
    sums = np.array(list(product([0.0, 1.0], repeat=len(ranks)))) @ ranks
    greater, less = np.mean(sums >= observed), np.mean(sums <= observed)
    draw.shuffle(turned := [Fraction(-number, 7) for number in differences])
    expected = {"greater": greater, "less": less, "two-sided": min(1.0, 2 * min(greater, less))}
    for alternative, p in expected.items():
        test = signed_rank(differences, alternative)
        assert (test.statistic, test.p) == (observed, p)
        assert test.attainable_p == min(1, (1 + (alternative == "two-sided")) * 0.5 ** len(ranks)) <= p
        mirrored = {"greater": "less", "less": "greater"}.get(alternative, alternative)
        assert signed_rank(turned, mirrored).p == p


def test_a_thousand_pairs_are_counted_and_more_are_refused():
    middle = math.comb(1000, 500) / 2**1000
    signs = [(-1) ** place for place in range(1001)]
    assert signed_rank(signs[:1000]).p == pytest.approx((1 + middle) / 2, rel=1e-11)
    with pytest.raises(BenchError, match=r"1,001 pairs: .* at most 1,000; use fewer seeds"):
        signed_rank(signs)


def test_means_and_their_standard_errors(table):
    """In any order, for one run and for none, and for squares beyond a float's range."""
    draw = random.Random(1)
    for scores in ([1e300, 3e300], [0.1] * 7, [draw.uniform(0, 9) for _ in range(12)]):
        error = scipy.stats.sem(np.divide(scores, max(scores))) * max(scores)
        found = []
        for order in (scores, scores[::-1]):
            row = mb.leaderboard(table({"a": {"x": order}}, task="regression")).iloc[0]
            found.append((row["mean"], row["standard_error"]))
        assert found[0] == found[1]
        assert found[0] == pytest.approx((statistics.fmean(scores), error), rel=1e-9, abs=1e-300)
    board = mb.leaderboard(table({"a": {"x": [7, None]}, "b": {"x": [None] * 2}}))
    assert board["mean"].iloc[:2].tolist() == pytest.approx([3.5, math.nan], nan_ok=True)
    assert board["standard_error"].isna().all()


@pytest.mark.parametrize(("n", "alpha"), {6: 0.05, 10: 0.05 / 23, 20: 0.05 / 3, 50: 0.05 / 8}.items())
def test_a_true_difference_of_this_size_is_found_with_80_percent(n, alpha):
    differences = np.random.default_rng(n).normal(0, 5, n).round(4)
    row = mb.compare(gained({"a": differences.tolist()}, alpha=alpha)).iloc[0]
    draws = np.random.default_rng(7).normal(row["detectable"] / differences.std(ddof=1), 1, (3000, n))
    shown = [mb.signed_rank(differences, "two-sided").p <= alpha for differences in draws.tolist()]
    assert np.mean(shown) == pytest.approx(0.8, abs=0.03)  # four standard errors
