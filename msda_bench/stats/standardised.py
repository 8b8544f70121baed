"""How far our mean is from a published one, in standard errors of the difference."""

from __future__ import annotations

import math
from dataclasses import dataclass

from msda_bench.stats.summary import Summary

FAR = 2.0
"""Standard errors beyond which a difference is more than noise, for a reader's eye."""


@dataclass(frozen=True)
class Gap:
    """The difference between our mean and a published one.

    Attributes:
        difference: ours - published.
        z: the difference by its standard error.
        df: degrees of freedom of that standard error; under equal means z is about Student's t with so many.
    """

    difference: float
    z: float
    df: float

    @property
    def is_near(self) -> bool:
        """Whether it is no more than noise."""
        return abs(self.z) <= FAR

    @property
    def chance(self) -> float:
        """Probability that a gap between equal means is not near; above 5 % by as much as the runs are few."""
        from scipy.special import stdtr

        return float(2 * stdtr(self.df, -FAR))


def gap(ours: Summary, mean: float, standard_error: float, runs: int) -> Gap | None:
    """Standardises the difference between the means of two samples that share no run (Welch 1947, Biometrika 34:28-35).

    The variance of the difference is the sum of both squared standard errors, with the degrees of freedom of Welch and
    Satterthwaite. A single run of ours has no standard error; then the published runs' standard deviation,
    `standard_error` sqrt(`runs`), stands for that of ours, and z tells how well the run fits among the published ones.

    Args:
        ours: our runs.
        mean: the published mean.
        standard_error: of that mean, above 0.
        runs: how many it is over, at least 2.

    Returns:
        The gap; None without runs of ours.
    """
    if ours.mean is None:
        return None
    difference = ours.mean - mean
    theirs = standard_error**2
    if ours.standard_error is None:
        return Gap(difference, difference / math.sqrt(theirs * (runs + 1)), runs - 1)
    own = ours.standard_error**2
    total = own + theirs
    df = total**2 / (own**2 / (ours.n - 1) + theirs**2 / (runs - 1))
    return Gap(difference, difference / math.sqrt(total), df)
