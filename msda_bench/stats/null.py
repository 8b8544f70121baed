"""The exact null distribution of the signed-rank statistic.

Under the null hypothesis each of the 2^n ways to sign the ranks is equally likely, so a tail is a count of subsets of
the ranks by their sum: the coefficients of prod_i (1 + x^r_i). The polynomial is kept as one large integer, its value
at x = 2^width; `width` bits hold any sum of coefficients, as that is at most 2^n. Multiplying by 1 + x^r is then a
shift and an addition, and a tail is what stands above a bit, its digits added by one remainder modulo 2^width - 1.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache


def doubled_midranks(magnitudes: Sequence[int]) -> list[int]:
    """Ranks from 1 of non-negative magnitudes, ties sharing their mean rank, all times two to stay integers."""
    order = sorted(range(len(magnitudes)), key=magnitudes.__getitem__)
    ranks = [0] * len(magnitudes)
    first = 0
    while first < len(order):
        after = first
        while after < len(order) and magnitudes[order[after]] == magnitudes[order[first]]:
            after += 1
        for position in order[first:after]:
            ranks[position] = first + 1 + after
        first = after
    return ranks


def count_at_least(ranks: Sequence[int], threshold: int) -> int:
    """Of the 2^n subsets of `ranks`, counts those that sum to `threshold` or more."""
    width = _width(len(ranks))
    return _digit_sum(_subset_sums(ranks) >> (max(threshold, 0) * width), width)


@lru_cache(maxsize=256)
def walsh_cut(n: int, alpha: Fraction) -> int:
    """How many Walsh averages a 1 - alpha interval of the Hodges-Lehmann estimate leaves out at each end, plus one.

    It is the largest k with P(W+ <= k - 1) <= alpha / 2 for n untied differences (Hollander and Wolfe, section 3.3),
    and 0 where no such k exists: too few differences for a bounded interval.
    """
    ranks = range(1, n + 1)
    total, width, sums = n * (n + 1) // 2, _width(n), _subset_sums(ranks)

    def count_at_most(statistic: int) -> int:  # by symmetry the upper tail from total - statistic
        return _digit_sum(sums >> ((total - statistic) * width), width)

    return bisect_right(range(total + 1), alpha / 2 * 2**n, key=count_at_most)


def _width(n: int) -> int:
    return n + 2


def _subset_sums(ranks: Sequence[int]) -> int:
    width, polynomial = _width(len(ranks)), 1
    for rank in ranks:
        polynomial += polynomial << (rank * width)
    return polynomial


def _digit_sum(number: int, width: int) -> int:
    return number % ((1 << width) - 1)
