"""Wilcoxon's signed-rank test, exact with ties and zeros."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from msda_bench.stats.exact import Number, scaled_integers
from msda_bench.stats.null import count_at_least, doubled_midranks

Alternative: TypeAlias = Literal["greater", "less", "two-sided"]
TestStatus: TypeAlias = Literal["ok", "no_differences", "too_few_pairs"]


@dataclass(frozen=True)
class SignedRank:
    """What the test says.

    Attributes:
        statistic: W+, the sum of the ranks of the positive differences; half-integers occur with ties.
        p: exact p-value, rounded once to a float.
        n: differences that were ranked: those that are not zero.
        n_zero: differences of zero, dropped before ranking.
        status: ok, no_differences (all are zero, so p is 1) or too_few_pairs (there are none, so p is 1).
        attainable_p: the smallest p that n differences can give, whatever their signs: 2^-n one-sided, with ties too.
    """

    statistic: float
    p: float
    n: int
    n_zero: int
    status: TestStatus
    attainable_p: float


def signed_rank(differences: Iterable[Number], alternative: Alternative = "greater") -> SignedRank:
    """Tests whether paired differences are symmetric about zero.

    Zeros are dropped, ties share their mid-rank, and the p-value is counted over all 2^n signs of the ranks that occur
    (Wilcoxon 1945; conditional on ties as in Pratt and Gibbons 1981). Values are compared exactly, so give integers or
    fractions where there are any: 0.3 - 0.2 and 0.2 - 0.1 are not tied as floats.

    Args:
        differences: one number a pair.
        alternative: "greater" asks whether differences tend to be positive; "two-sided" doubles the smaller tail.

    Returns:
        The test's outcome.

    Raises:
        ValueError: a difference is NaN or infinite, or the alternative is unknown.
    """
    if alternative not in {"greater", "less", "two-sided"}:
        raise ValueError(f"alternative must be greater, less or two-sided, not {alternative!r}")
    numerators, _ = scaled_integers(differences)
    signed = [number for number in numerators if number]
    ranks = doubled_midranks([abs(number) for number in signed])
    positive = sum(rank for rank, number in zip(ranks, signed, strict=True) if number > 0)
    n = len(signed)
    sides = 2 if alternative == "two-sided" else 1
    return SignedRank(
        statistic=positive / 2,
        p=min(1.0, sides * _tail(ranks, positive, alternative) / 2**n),
        n=n,
        n_zero=len(numerators) - n,
        status="ok" if n else "no_differences" if numerators else "too_few_pairs",
        attainable_p=min(1.0, sides / 2**n),
    )


def _tail(ranks: list[int], positive: int, alternative: Alternative) -> int:
    """Counts the signs at least as extreme; W- has the distribution of W+."""
    negative = sum(ranks) - positive
    if alternative == "two-sided":
        return count_at_least(ranks, max(positive, negative))
    return count_at_least(ranks, positive if alternative == "greater" else negative)
