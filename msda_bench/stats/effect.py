"""How large a paired difference is, beside the p-value that says whether there is one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from msda_bench.stats.exact import Number, scaled_integers
from msda_bench.stats.null import walsh_cut


@dataclass(frozen=True)
class Effect:
    """Size of paired differences, in their own unit.

    Attributes:
        mean: their mean.
        median: their median.
        hodges_lehmann: the median of the means of all pairs (each with itself too), the Walsh averages.
        low: lower end of the estimate's interval; None where there are too few differences for one.
        high: its upper end.
        wins: positive differences.
        ties: zeros.
        losses: negative differences.
    """

    mean: float
    median: float
    hodges_lehmann: float
    low: float | None
    high: float | None
    wins: int
    ties: int
    losses: int

    def turned(self) -> Effect:
        """The effect of the same differences with their signs turned."""

        def minus(value: float) -> float:
            return 0.0 - value  # not -value: a zero stays positive

        return Effect(
            mean=minus(self.mean),
            median=minus(self.median),
            hodges_lehmann=minus(self.hodges_lehmann),
            low=None if self.high is None else minus(self.high),
            high=None if self.low is None else minus(self.low),
            wins=self.losses,
            ties=self.ties,
            losses=self.wins,
        )


def paired_effect(differences: Iterable[Number], alpha: float = 0.05) -> Effect:
    """Estimates the size of paired differences.

    The interval is bounded by the k-th smallest and k-th largest Walsh average, k from the exact null distribution of
    the signed-rank statistic of n untied differences (Hodges and Lehmann 1963; Hollander and Wolfe, section 3.3).
    Zeros count; with ties it covers at least 1 - alpha.

    Args:
        differences: one number a pair, at least one.
        alpha: the interval covers 1 - alpha or more.

    Returns:
        The estimates.

    Raises:
        ValueError: there are no differences, or one is NaN or infinite.
    """
    numerators, scale = scaled_integers(differences)
    if not numerators:
        raise ValueError("no differences to estimate an effect from")
    numerators.sort()
    sums = sorted(a + b for i, a in enumerate(numerators) for b in numerators[i:])
    cut = walsh_cut(len(numerators), Fraction(alpha))
    return Effect(
        mean=sum(numerators) / (len(numerators) * scale),
        median=_twice_median(numerators) / (2 * scale),
        hodges_lehmann=_twice_median(sums) / (4 * scale),
        low=sums[cut - 1] / (2 * scale) if cut else None,
        high=sums[-cut] / (2 * scale) if cut else None,
        wins=sum(number > 0 for number in numerators),
        ties=numerators.count(0),
        losses=sum(number < 0 for number in numerators),
    )


def _twice_median(ordered: Sequence[int]) -> int:
    middle = len(ordered) // 2
    return ordered[middle] + ordered[-middle - 1]
