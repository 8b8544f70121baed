"""Wilcoxon's signed-rank test, exact with ties and zeros; implemented here because libraries are not exact then.

Under the null hypothesis each of the 2^n ways to sign the ranks is equally likely. The probability of each sum of the
positive ranks is therefore a coefficient of prod_i (1 + x^r_i) / 2, multiplied out one factor at a time. Up to n = 53
these floats are exact; up to 1,000 their relative error is below n 2^-52, far from any printed digit. More pairs are
refused: 2^-n is then no normal float.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, SupportsFloat, TypeAlias

import numpy as np
from numpy.typing import NDArray

from msda_bench.errors import BenchError

Alternative: TypeAlias = Literal["greater", "less", "two-sided"]
Reals: TypeAlias = NDArray[np.float64]

_MOST = 1000
"""The largest n for which 2^-n is a normal float, with a margin."""


@dataclass(frozen=True)
class SignedRank:
    """The result of the test.

    Attributes:
        statistic: W+, the sum of the ranks of the positive differences; half-integers occur with ties.
        p: exact p-value; 1 if no difference is left to rank.
        n: the number of ranked differences: those that are not zero.
        n_zero: the number of zero differences, which are dropped before ranking.
        attainable_p: the smallest p that n differences can give: 2^-n one-sided, also with ties.
    """

    statistic: float
    p: float
    n: int
    n_zero: int
    attainable_p: float


def signed_rank(differences: Iterable[SupportsFloat], alternative: Alternative = "greater") -> SignedRank:
    """Tests whether paired differences are symmetric about zero.

    Zeros are dropped, ties share their mid-rank, and the p-value counts all 2^n signs of the observed ranks (Wilcoxon
    1945; conditional on ties as in Pratt and Gibbons 1981). Differences tie if they are equal as floats, so round them
    once to fewer digits than their scores have: 0.3 - 0.2 and 0.2 - 0.1 are not tied.

    Args:
        differences: one number per pair.
        alternative: "greater" tests whether differences tend to be positive; "two-sided" doubles the smaller tail.

    Returns:
        The result of the test.

    Raises:
        ValueError: a difference is NaN or infinite, or the alternative is unknown.
        TypeError: a difference is not a number.
        BenchError: there are more than 1,000.
    """
    from msda_bench.results.argument_checks import argument

    if isinstance(differences, str | bytes | Mapping):
        raise TypeError(f"differences: must be numbers, not a {type(differences).__name__}")
    alternative = argument("alternative", alternative, Alternative)
    try:
        values = _finite(differences)
    except (TypeError, ValueError) as error:
        raise type(error)(f"differences: {error}") from None
    return signed_rank_tests(values)[alternative]


def _finite(numbers: Iterable[SupportsFloat]) -> Reals:
    values = list(numbers)
    array = np.asarray(values)
    if array.dtype.kind in "US":
        raise TypeError("must be numbers, not text")
    if array.ndim != 1:
        raise TypeError("must be one number per pair, not an array of several dimensions")
    if array.dtype.kind == "O":  # fractions, decimals, and integers beyond 64 bits
        array = np.array([float(value) for value in values])
    is_finite = np.isfinite(array)
    if not is_finite.all():
        first = int(np.argmin(is_finite))
        raise ValueError(f"not a finite number: {values[first]!r}")
    return array.astype(np.float64)


def signed_rank_tests(differences: Reals) -> dict[Alternative, SignedRank]:
    """Runs the tests of all three alternatives; see `signed_rank`."""
    if len(differences) > _MOST:
        raise BenchError(f"{len(differences):,} pairs: signed ranks are counted for at most {_MOST:,}; use fewer seeds")
    ranked = differences[differences != 0]
    _, places, counts = np.unique(np.abs(ranked), return_inverse=True, return_counts=True)
    doubled = (2 * np.cumsum(counts) - counts + 1)[places]  # mid-ranks times two are whole numbers
    positive = int(doubled[ranked > 0].sum())
    negative = int(doubled.sum()) - positive
    # W- is distributed like W+, so that one lower tail gives both p-values.
    shares = _shares(doubled, min(positive, negative))
    smaller = float(shares.sum())
    larger = 1 - float(shares[:-1].sum())
    if positive >= negative:
        greater, less = smaller, larger
    else:
        greater, less = larger, smaller

    def test(p: float, sides: int) -> SignedRank:
        n = len(ranked)
        return SignedRank(positive / 2, p, n, len(differences) - n, min(1.0, sides * 0.5**n))

    return {"greater": test(greater, 1), "less": test(less, 1), "two-sided": test(min(1.0, 2 * smaller), 2)}


def _shares(ranks: Iterable[int], most: int) -> Reals:
    """The probabilities that a random subset of ranks sums to 0, 1, ..., `most`."""
    ascending = sorted(ranks)
    reached = 0
    shares = np.zeros(most + 1)
    longer = np.zeros(most + 1)
    shares[0] = 0.5 ** len(ascending)
    for rank in ascending[: bisect_right(ascending, most)]:
        reached = min(most, reached + rank)
        longer[:rank] = shares[:rank]  # two arrays, since numpy copies what it adds to itself
        np.add(shares[rank : reached + 1], shares[: reached + 1 - rank], out=longer[rank : reached + 1])
        shares, longer = longer, shares
    return shares


@lru_cache(maxsize=256)
def walsh_cut(n: int, alpha: float) -> int:
    """One plus the number of Walsh averages that a 1 - alpha Hodges-Lehmann interval excludes at each end.

    This is the largest k with P(W+ <= k - 1) <= alpha / 2 for n untied differences (Hollander and Wolfe, section 3.3).
    It is 0 if no such k exists, that is, if there are too few differences for a bounded interval.
    """
    return int(np.searchsorted(_tails(n), alpha / 2, "right"))


@lru_cache(maxsize=64)
def _tails(n: int) -> Reals:
    """P(W+ <= w) for n untied differences and w up to half of the largest W+."""
    return np.cumsum(_shares(range(1, n + 1), n * (n + 1) // 4))
