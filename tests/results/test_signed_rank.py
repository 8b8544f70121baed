from __future__ import annotations

import math
import random
from decimal import Decimal
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

import msda_bench as mb
from msda_bench import signed_rank
from msda_bench.store.record import Outcome

MIXED = [3, 1, -2, 0, 5, 4, -1, 2, 2, 6, -3, 1, 0, 4, 7, -2, 3, 5, 1, 2]
MAIZE = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]
whole = st.lists(st.integers(-9, 9), max_size=25)


def differ(first: str, second: str) -> list[Fraction]:
    return [Fraction(a) - Fraction(b) for a, b in zip(first.split(), second.split(), strict=True)]


DEPRESSION = differ("1.83 .50 1.62 2.48 1.68 1.88 1.55 3.06 1.30", ".878 .647 .598 2.05 1.06 1.29 1.06 3.14 1.29")
TEN = differ("125 115 130 140 140 115 140 125 140 135", "110 122 125 120 140 124 123 137 135 145")
TIED = differ("71 71 69 61 75 71 77 72 62 65", "62 66 61 68 74 62 68 62 55 59")
DEMSAR = differ(
    ".768 .591 .971 .661 .888 .931 .668 .583 .838 1 .962 .666 .981 .978",
    ".763 .599 .954 .628 .882 .936 .661 .583 .775 1 .940 .619 .972 .957",
)
SLEEP = [Fraction(text) for text in ["1.2", "2.4", "1.3", "1.3", "0", "1", "1.8", ".8", "4.6", "1.4"]]


def negated(*ranks: int) -> list[int]:
    return [-rank if rank in ranks else rank for rank in range(1, 21)]


@pytest.mark.parametrize(
    ("differences", "alternative", "p"),
    [
        (range(1, 5), "greater", 0.0625),
        (range(1, 6), "greater", 0.03125),
        (range(1, 7), "greater", 0.015625),
        (range(1, 9), "greater", 0.00390625),
        (range(1, 11), "greater", 0.0009765625),
        (range(1, 21), "greater", 9.5367431640625e-07),
        (negated(20, 19, 18, 3), "greater", 51017 / 1048576),
        (MAIZE, "greater", 0.0206298828125),
        (MAIZE, "less", 0.982330322265625),
        (MAIZE, "two-sided", 0.041259765625),
        (DEPRESSION, "greater", 0.01953125),
        (DEPRESSION, "two-sided", 0.0390625),
        (SLEEP, "greater", 0.001953125),
        (TEN, "greater", 0.31640625),
        (TEN, "less", 0.705078125),
        (TEN, "two-sided", 0.6328125),
        (TIED, "greater", 0.0078125),
        (MIXED, "greater", 1244 / 262144),
        (MIXED, "less", 0.99609375),
        (MIXED, "two-sided", 0.009490966796875),
        (DEMSAR, "greater", 15 / 4096),
    ],
)
def test_published_values_are_met_to_the_last_bit(differences: list[Fraction], alternative: str, p: float) -> None:
    assert signed_rank(differences, alternative).p == p  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("differences", "statistic", "n", "n_zero"),
    [(MAIZE, 96, 15, 0), (DEPRESSION, 40, 9, 0), (MIXED, 143.5, 18, 2), (negated(20, 19, 18, 3), 150, 20, 0)],
)
def test_statistic_and_counts(differences: list[Fraction], statistic: float, n: int, n_zero: int) -> None:
    found = signed_rank(differences)
    assert (found.statistic, found.n, found.n_zero) == (statistic, n, n_zero)


def test_without_differences_there_is_nothing_to_test() -> None:
    for nothing, n_zero in (([], 0), ([0, 0.0, Fraction(0)], 3)):
        found = signed_rank(nothing)
        assert (found.statistic, found.p, found.n, found.n_zero, found.attainable_p) == (0, 1, 0, n_zero, 1)


@pytest.mark.parametrize(
    ("differences", "alternative", "error", "words"),
    [
        *(
            ([1.0, bad], "greater", ValueError, "not a finite number")
            for bad in (math.nan, -math.inf, np.float32("nan"))
        ),
        (["1.0"], "greater", TypeError, "differences: must be numbers, not text"),
        ("12", "greater", TypeError, "differences: must be numbers, not a str"),
        (np.ones((2, 2)), "greater", TypeError, "one number per pair, not an array of several dimensions"),
        ([1], "both", ValueError, "alternative: must be 'greater', 'less' or 'two-sided', not 'both'"),
    ],
)
def test_what_cannot_be_tested_is_refused(differences, alternative, error, words) -> None:
    with pytest.raises(error, match=words):
        signed_rank(differences, alternative)


def test_any_kind_of_number_is_ranked() -> None:
    kinds = [np.int64(2), 2.0, Fraction(2), Decimal(2), -np.float32(2), 3]
    assert signed_rank(kinds).statistic == 4 * 3 + 6  # five tied at rank 3


def test_scores_that_are_equal_as_fractions_tie(table) -> None:
    """1/3 - 1/6 and 1/2 - 1/3 are equal, their floats are not; so are the means over targets of unequal sizes."""
    assert 100 / 3 - 100 / 6 != 100 / 2 - 100 / 3
    score = {"1/2": (6, 3), "1/3": (6, 2), "1/6": (6, 1)}
    runs = {
        name: {
            target: [Outcome(*map((7 if target == "y" else 1).__mul__, score[one])) for one in own] for target in "xy"
        }
        for name, own in (("a", ["1/3", "1/2", "1/6"]), ("b", ["1/6", "1/3", "1/3"]))
    }
    for row in mb.compare(table(runs)).query("scope != 'across_targets'").to_dict("records"):
        assert (row["statistic"], row["n_zero"]) == (4, 0)  # three tied at rank 2, two of them positive
    pair = {
        name: {"x": own} for name, own in (("a", [Outcome(3, n_correct=1)] * 6), ("b", [Outcome(6, n_correct=2)] * 6))
    }
    assert mb.compare(table(pair))["outcome"].tolist() == ["same"] * 3


@given(st.lists(st.integers(-6, 6), max_size=10))
def test_every_p_is_a_count_over_all_signs(differences: list[int]) -> None:
    check_by_enumeration(differences)


def check_by_enumeration(differences: list[int]) -> None:
    magnitudes = [abs(number) for number in differences if number]
    ranks = scipy.stats.rankdata(magnitudes) if magnitudes else np.zeros(0)
    observed = sum(rank for rank, number in zip(ranks, filter(None, differences), strict=True) if number > 0)
    signs = np.array(list(product([0.0, 1.0], repeat=len(ranks))))
    sums = signs @ ranks
    greater, less = np.mean(sums >= observed), np.mean(sums <= observed)
    assert signed_rank(differences).statistic == observed
    assert signed_rank(differences, "greater").p == greater
    assert signed_rank(differences, "less").p == less
    assert signed_rank(differences, "two-sided").p == min(1.0, 2 * min(greater, less))


def test_agrees_with_scipy_where_scipy_is_exact() -> None:
    draw = np.random.default_rng(0)
    for alternative in ("greater", "less", "two-sided"):
        for n in range(1, 31):
            samples = draw.normal(draw.normal(), 1.0, size=(30, n))
            oracle = scipy.stats.wilcoxon(samples, alternative=alternative, method="exact", axis=1).pvalue
            ours = [signed_rank(sample, alternative).p for sample in samples.tolist()]
            np.testing.assert_allclose(ours, oracle, rtol=1e-12)


@given(whole, st.fractions(min_value=Fraction(1, 1000), max_value=1000), st.randoms(use_true_random=False))
def test_neither_sign_nor_unit_nor_order_matters(differences: list[int], unit: Fraction, draw: random.Random) -> None:
    test, turned = signed_rank(differences), [-unit * number for number in differences]
    draw.shuffle(turned)
    assert test.p == signed_rank(turned, "less").p
    assert signed_rank(differences, "two-sided") == signed_rank([-number for number in turned], "two-sided")


@given(whole, st.sampled_from(["greater", "less", "two-sided"]))
def test_no_p_is_below_the_smallest_attainable(differences: list[int], alternative: str) -> None:
    found = signed_rank(differences, alternative)  # type: ignore[arg-type]
    best = {"greater": abs, "less": lambda number: -abs(number), "two-sided": abs}[alternative]
    assert found.attainable_p <= found.p <= 1
    assert signed_rank(map(best, differences), alternative).p == found.attainable_p  # type: ignore[arg-type]


def by_counting(differences: list[int]) -> float:
    """The one-sided p by whole numbers of any size."""
    ranks = (2 * scipy.stats.rankdata(np.abs(differences))).astype(int).tolist()
    below = sum(rank for rank, number in zip(ranks, differences, strict=True) if number < 0)
    counts = [1]
    for rank in ranks:
        counts = [one + other for one, other in zip(counts + [0] * rank, [0] * rank + counts, strict=True)]
    return float(Fraction(sum(counts[: below + 1]), 2 ** len(ranks)))


@settings(max_examples=20)
@given(st.lists(st.integers(-30, 60).filter(bool), min_size=54, max_size=90))
def test_floats_agree_with_whole_numbers_beyond_53_differences(differences: list[int]) -> None:
    assert signed_rank(differences).p == pytest.approx(by_counting(differences), rel=1e-13)


@pytest.mark.parametrize("ties", [1, 30])
@pytest.mark.parametrize("negative", [2, 2.1, 2.25])
def test_beyond_a_thousand_the_normal_distribution_continues_the_counts(negative, ties) -> None:
    """1,001 differences give nearly the p of the first 1,000, which are counted."""
    many = [
        (1 + place // ties) * (-1 if int(place / negative) != int((place + 1) / negative) else 1)
        for place in range(1001)
    ]
    side, many[-1] = "less" if sum(many) < 0 else "greater", 1 + 500 // ties
    p = signed_rank(many, side).p
    assert p == pytest.approx(signed_rank([*many[:1000], 0], side).p, rel=0.1)
    assert p == pytest.approx(scipy.stats.wilcoxon(many, alternative=side, method="asymptotic").pvalue, rel=1e-3)
    assert 1e-6 < p < 0.6


def test_a_thousand_differences_neither_overflow_nor_vanish() -> None:
    assert signed_rank(range(1, 1001)).p == 2.0**-1000
    middle = math.comb(1000, 500) / 2**1000
    assert signed_rank([(-1) ** place for place in range(1000)]).p == pytest.approx((1 + middle) / 2, rel=1e-11)
