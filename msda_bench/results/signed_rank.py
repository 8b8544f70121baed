"""Wilcoxon's signed-rank test, exact with ties and zeros; implemented here because libraries are not exact then.

Under the null hypothesis each of the 2^n ways to sign the ranks is equally likely. The probability of each sum of the
positive ranks is therefore a coefficient of prod_i (1 + x^r_i) / 2, multiplied out one factor at a time. Up to n = 53
these floats are exact; up to 1,000 their relative error is below n 2^-52, far from any printed digit. For larger n,
where this would take seconds per test, Edgeworth's series is used.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, SupportsFloat, TypeAlias

import numpy as np
from numpy.typing import NDArray

Alternative: TypeAlias = Literal["greater", "less", "two-sided"]
Reals: TypeAlias = NDArray[np.float64]
Ranks: TypeAlias = NDArray[np.int64]

_MOST_COUNTED = 1000
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
    """
    from msda_bench.results.door import argument

    if isinstance(differences, str | bytes | Mapping):
        raise TypeError(f"differences: must be numbers, not a {type(differences).__name__}")
    alternative = argument("alternative", alternative, Alternative)
    try:
        return signed_rank_tests(differences)[alternative]
    except (TypeError, ValueError) as error:
        raise type(error)(f"differences: {error}") from None


def signed_rank_tests(differences: Iterable[SupportsFloat]) -> dict[Alternative, SignedRank]:
    """Runs the tests of all three alternatives; see `signed_rank`."""
    values = finite(differences)
    ranked = values[values != 0]
    ranks = doubled_midranks(np.abs(ranked))
    n, positive = len(ranked), int(ranks[ranked > 0].sum())
    negative = int(ranks.sum()) - positive
    # W- is distributed like W+, so that one lower tail gives both p-values.
    near, beyond = lower_tails(ranks.tolist(), min(positive, negative))
    greater, less = (near, 1 - beyond) if positive >= negative else (1 - beyond, near)

    def test(p: float, sides: int) -> SignedRank:
        return SignedRank(positive / 2, p, n, len(values) - n, min(1.0, sides * 0.5**n))

    return {"greater": test(greater, 1), "less": test(less, 1), "two-sided": test(min(1.0, 2 * near), 2)}


def finite(numbers: Iterable[SupportsFloat]) -> Reals:
    """The numbers as floats.

    Raises:
        ValueError: a number is NaN or infinite.
        TypeError: a value is not a number.
    """
    values = list(numbers)
    array = np.asarray(values)
    if array.dtype.kind in "US":
        raise TypeError("must be numbers, not text")
    if array.ndim != 1:
        raise TypeError("must be one number per pair, not an array of several dimensions")
    if array.dtype.kind == "O":  # fractions, decimals, and integers beyond 64 bits
        array = np.array([float(value) for value in values])
    if not np.isfinite(array).all():
        raise ValueError(f"not a finite number: {values[int(np.argmin(np.isfinite(array)))]!r}")
    return array.astype(np.float64)


def doubled_midranks(magnitudes: Reals) -> Ranks:
    """The ranks of magnitudes, from 1, with mean ranks for ties; doubled, so that they are integers."""
    _, places, counts = np.unique(magnitudes, return_inverse=True, return_counts=True)
    doubled: Ranks = (2 * np.cumsum(counts) - counts + 1)[places]
    return doubled


def lower_tails(ranks: Sequence[int], total: int) -> tuple[float, float]:
    """The probabilities that a random subset of `ranks` sums to at most `total`, and to less than `total`."""
    if len(ranks) > _MOST_COUNTED:
        return edgeworth(ranks, total), edgeworth(ranks, total - 1)
    step = math.gcd(*ranks) or 1
    shares = np.cumsum(_shares([rank // step for rank in ranks], total // step))
    below = (total - 1) // step
    return float(shares[-1]), float(shares[below]) if below >= 0 else 0.0


def _shares(ranks: Iterable[int], most: int) -> Reals:
    """The probabilities that a random subset of ranks sums to 0, 1, ..., `most`."""
    ascending, reached = sorted(ranks), 0
    shares, longer = np.zeros(most + 1), np.zeros(most + 1)
    shares[0] = 0.5 ** len(ascending)
    for rank in ascending:
        if rank > most:
            break
        reached = min(most, reached + rank)
        longer[:rank] = shares[:rank]
        np.add(shares[rank : reached + 1], shares[: reached + 1 - rank], out=longer[rank : reached + 1])
        shares, longer = longer, shares
    return shares


def edgeworth(ranks: Sequence[int], total: int) -> float:
    """The probability that a random subset sums to at most `total`, by Edgeworth's series to the fourth cumulant.

    For 1000 ranks or more and probabilities down to 1e-6, the relative error is below 0.001. The third cumulant is zero
    (Fellingham and Stoker 1964, Journal of the American Statistical Association 59:899-905).
    """
    halves, step = np.asarray(ranks, np.float64) / 2, math.gcd(*ranks)
    variance = float((halves**2).sum())
    z = (total // step * step + step / 2 - float(halves.sum())) / math.sqrt(variance)
    excess = -2 * float((halves**4).sum()) / variance**2
    density = math.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    return min(1.0, max(0.0, math.erfc(-z / math.sqrt(2)) / 2 - density * excess * (z**3 - 3 * z) / 24))


@lru_cache(maxsize=256)
def walsh_cut(n: int, alpha: float) -> int:
    """One plus the number of Walsh averages that a 1 - alpha Hodges-Lehmann interval excludes at each end.

    This is the largest k with P(W+ <= k - 1) <= alpha / 2 for n untied differences (Hollander and Wolfe, section 3.3).
    It is 0 if no such k exists, that is, if there are too few differences for a bounded interval.
    """
    ranks, most = range(1, n + 1), n * (n + 1) // 4
    if n > _MOST_COUNTED:
        return bisect_right(range(most + 1), alpha / 2, key=lambda statistic: edgeworth(ranks, statistic))
    return int(np.searchsorted(np.cumsum(_shares(ranks, most)), alpha / 2, "right"))
