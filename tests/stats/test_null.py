from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from msda_bench.stats.null import count_at_least, doubled_midranks, walsh_cut


@given(st.lists(st.integers(0, 8), max_size=30))
def test_midranks_are_scipys_doubled(magnitudes: list[int]) -> None:
    assert doubled_midranks(magnitudes) == [2 * rank for rank in scipy.stats.rankdata(magnitudes)]


@given(st.lists(st.integers(1, 20), max_size=10), st.integers(-1, 210))
def test_tails_are_counts_of_subsets(ranks: list[int], threshold: int) -> None:
    subsets = product([0, 1], repeat=len(ranks))
    sums = [sum(rank for rank, taken in zip(ranks, some, strict=True) if taken) for some in subsets]
    assert count_at_least(ranks, threshold) == sum(total >= threshold for total in sums)


@pytest.mark.parametrize(
    ("n", "cut"),  # one more than the two-sided 5 % critical value of the usual tables
    [(5, 0), (6, 1), (7, 3), (8, 4), (9, 6), (10, 9), (12, 14), (15, 26), (20, 53), (25, 90)],
)
def test_cut_is_the_tabled_critical_value(n: int, cut: int) -> None:
    assert walsh_cut(n, Fraction(1, 20)) == cut
