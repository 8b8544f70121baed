"""Wilcoxon's signed-rank test, exact with ties and zeros; implemented here because libraries are not exact then.

Under the null hypothesis each of the 2^n ways to sign the ranks is equally likely. A tail therefore counts subsets of
the ranks by their sum: the coefficients of prod_i (1 + x^r_i), multiplied out one factor at a time and only as far as
the tail reaches. Up to n = 62 the counts are 64-bit integers. Up to n = 1000 they are floats, computed separately for
every other rank and joined by one more sum. All terms are positive, so the relative error stays below n 2^-52, far from
any printed digit. For larger n, where this would take seconds per test, Edgeworth's series is used.
"""

from __future__ import annotations

import math
import operator
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

Number: TypeAlias = int | float | Fraction
"""Input of the statistics; a float stands for exactly the binary fraction that it holds."""
Alternative: TypeAlias = Literal["greater", "less", "two-sided"]
TestStatus: TypeAlias = Literal["ok", "no_differences", "too_few_pairs"]
Weights: TypeAlias = NDArray[Any]

_MOST_INTEGERS = 62
"""The largest n for which counts of the 2^n subsets, and their sums, fit into 64 bits."""
_MOST_COUNTED = 1000
"""The largest n for which 2^-n is a normal float, with a margin."""
_NEAR_END = 6
"""A lower tail that reaches less than one sixth of all sums is counted without splitting the ranks."""


@dataclass(frozen=True)
class SignedRank:
    """The result of the test.

    Attributes:
        statistic: W+, the sum of the ranks of the positive differences; half-integers occur with ties.
        p: exact p-value, rounded once to a float.
        n: the number of ranked differences: those that are not zero.
        n_zero: the number of zero differences, which are dropped before ranking.
        status: ok, no_differences (all are zero, so p is 1) or too_few_pairs (there are none, so p is 1).
        attainable_p: the smallest p that n differences can give: 2^-n one-sided, also with ties.
    """

    statistic: float
    p: float
    n: int
    n_zero: int
    status: TestStatus
    attainable_p: float


def signed_rank(differences: Iterable[Number], alternative: Alternative = "greater") -> SignedRank:
    """Tests whether paired differences are symmetric about zero.

    Zeros are dropped, ties share their mid-rank, and the p-value counts all 2^n signs of the observed ranks (Wilcoxon
    1945; conditional on ties as in Pratt and Gibbons 1981). Values are compared exactly, so pass integers or fractions
    if possible: as floats, 0.3 - 0.2 and 0.2 - 0.1 are not tied.

    Args:
        differences: one number per pair.
        alternative: "greater" tests whether differences tend to be positive; "two-sided" doubles the smaller tail.

    Returns:
        The result of the test.

    Raises:
        ValueError: a difference is NaN or infinite, or the alternative is unknown.
    """
    from msda_bench.results.door import argument

    if isinstance(differences, str | bytes | Mapping):
        raise TypeError(f"differences: must be numbers, not a {type(differences).__name__}")
    alternative = argument("alternative", alternative, Alternative)
    try:
        return signed_rank_tests(differences)[alternative]
    except (TypeError, ValueError) as error:
        raise type(error)(f"differences: {error}") from None


def signed_rank_tests(differences: Iterable[Number]) -> dict[Alternative, SignedRank]:
    """Runs the tests of all three alternatives, in little more time than one.

    Raises:
        ValueError: a difference is NaN or infinite.
    """
    numerators, _ = scaled_integers(differences)
    signed = [number for number in numerators if number]
    ranks = doubled_midranks([abs(number) for number in signed])
    positive = sum(rank for rank, number in zip(ranks, signed, strict=True) if number > 0)
    negative = sum(ranks) - positive
    # W- is distributed like W+, so that both one-sided p-values come from one lower tail.
    near, beyond = lower_tails(ranks, min(positive, negative))
    greater, less = (near, 1 - beyond) if positive >= negative else (1 - beyond, near)
    status: TestStatus = "ok" if signed else "no_differences" if numerators else "too_few_pairs"

    def test(p: float, sides: int) -> SignedRank:
        n = len(signed)
        attainable = min(1.0, sides / 2**n)
        return SignedRank(positive / 2, p, n, len(numerators) - n, status, attainable)

    return {"greater": test(greater, 1), "less": test(less, 1), "two-sided": test(min(1.0, 2 * near), 2)}


def scaled_integers(values: Iterable[Number]) -> tuple[list[int], int]:
    """Writes values as integers over their least common denominator.

    Raises:
        ValueError: a value is NaN or infinite.
        TypeError: a value is not a number.
    """
    numbers = list(values)
    if set(map(type, numbers)) <= {int}:
        return cast("list[int]", numbers), 1
    ratios = [_ratio(number) for number in numbers]
    scale = math.lcm(*(denominator for _, denominator in ratios))
    return [numerator * (scale // denominator) for numerator, denominator in ratios], scale


def _ratio(value: Any) -> tuple[int, int]:
    if not hasattr(value, "as_integer_ratio"):  # numpy's integers
        return operator.index(value), 1
    try:
        numerator, denominator = value.as_integer_ratio()
    except (ValueError, OverflowError):
        raise ValueError(f"not a finite number: {value!r}") from None
    return int(numerator), int(denominator)


def doubled_midranks(magnitudes: Sequence[int]) -> list[int]:
    """The ranks of non-negative magnitudes, from 1, with mean ranks for ties; doubled, so that they are integers."""
    counts = Counter(magnitudes)
    doubled, below = {}, 0
    for magnitude in sorted(counts):
        doubled[magnitude] = 2 * below + 1 + counts[magnitude]
        below += counts[magnitude]
    return [doubled[magnitude] for magnitude in magnitudes]


def lower_tails(ranks: Sequence[int], total: int) -> tuple[float, float]:
    """The probabilities that a random subset of `ranks` sums to at most `total`, and to less than `total`."""
    if len(ranks) > _MOST_COUNTED:
        return edgeworth(ranks, total), edgeworth(ranks, total - 1)
    step = math.gcd(*ranks) or 1
    scaled, whole_steps = sorted(rank // step for rank in ranks), total // step
    below = whole_steps - 1 if total % step == 0 else whole_steps
    if len(ranks) <= _MOST_INTEGERS:
        counts = np.cumsum(_weights(scaled, whole_steps, np.int64))
        return counts[-1].item() / 2 ** len(ranks), (counts[below].item() if below >= 0 else 0) / 2 ** len(ranks)
    if _NEAR_END * whole_steps < sum(scaled):  # counting a short tail is faster than halving everything
        shares = np.cumsum(_weights(scaled, whole_steps, np.float64))
        return shares[-1].item(), shares[below].item() if below >= 0 else 0.0
    first, second = _shares(scaled[::2]), np.cumsum(_shares(scaled[1::2]))
    return _joined(first, second, whole_steps), _joined(first, second, below)


def edgeworth(ranks: Sequence[int], total: int) -> float:
    """The probability that a random subset sums to at most `total`, by Edgeworth's series to the fourth cumulant.

    For 1000 ranks or more and probabilities down to 1e-6, the relative error is below 0.001. The third cumulant is zero
    (Fellingham and Stoker 1964, Journal of the American Statistical Association 59:899-905).
    """
    halves = np.asarray(ranks, np.float64) / 2
    variance = float((halves**2).sum())
    step = math.gcd(*ranks)
    z = (total // step * step + step / 2 - float(halves.sum())) / math.sqrt(variance)
    excess = -2 * float((halves**4).sum()) / variance**2
    density = math.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    return min(1.0, max(0.0, math.erfc(-z / math.sqrt(2)) / 2 - density * excess * (z**3 - 3 * z) / 24))


@lru_cache(maxsize=256)
def walsh_cut(n: int, alpha: Fraction) -> int:
    """One plus the number of Walsh averages that a 1 - alpha Hodges-Lehmann interval excludes at each end.

    This is the largest k with P(W+ <= k - 1) <= alpha / 2 for n untied differences (Hollander and Wolfe, section 3.3).
    It is 0 if no such k exists, that is, if there are too few differences for a bounded interval.
    """
    ranks, most = range(1, n + 1), n * (n + 1) // 4
    if n > _MOST_COUNTED:
        return bisect_right(range(most + 1), float(alpha) / 2, key=lambda statistic: edgeworth(ranks, statistic))
    if n > _MOST_INTEGERS:
        return bisect_right(np.cumsum(_shares(ranks)[: most + 1]).tolist(), alpha / 2)
    return bisect_right(np.cumsum(_weights(ranks, most, np.int64)).tolist(), alpha / 2 * 2**n)


def _weights(ranks: Sequence[int], most: int, kind: type[np.number[Any]]) -> Weights:
    """The number of subsets of ascending ranks for each sum from 0 to `most`; as floats, their share of all subsets."""
    weights: Weights = np.zeros(most + 1, kind)
    other = np.zeros_like(weights)
    weights[0] = 1 if kind is np.int64 else 0.5 ** len(ranks)
    reached = 0
    for rank in ranks:
        if rank > most:
            break
        reached = min(most, reached + rank)
        other[:rank] = weights[:rank]
        np.add(weights[rank : reached + 1], weights[: reached + 1 - rank], out=other[rank : reached + 1])
        weights, other = other, weights
    return weights


def _shares(ranks: Sequence[int]) -> Weights:
    """The probabilities of all sums, which are symmetric."""
    total = sum(ranks)
    lower = _weights(ranks, total // 2, np.float64)
    return np.concatenate([lower, lower[::-1][1 - total % 2 :]])


def _joined(first: Weights, cumulative: Weights, total: int) -> float:
    """The probability that two sums add up to at most `total`, from the weights of one and the tail of the other."""
    reach = first[: max(total + 1, 0)]
    left = np.minimum(total - np.arange(len(reach)), len(cumulative) - 1)
    return float((reach * cumulative[left]).sum())
