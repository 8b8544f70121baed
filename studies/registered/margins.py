"""The registered tests against a margin: exact ones of paired gains, t tests of a mean gain, and five verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

import msda_bench as mb
from estimates import POWER, Reals

LEVEL = 0.05
BETTER_BY_MORE, BETTER, EQUIVALENT, WORSE = "better by more than the margin", "better", "equivalent", "worse"
UNDECIDED = "undecided"
MARGINS = {"digits": 1.5}
"""The smallest gain that matters on a task, in points, where it is not `MARGIN`."""
MARGIN = 1.0
_DECIMALS = 9
"""Gains are rounded to so many decimals, so that those that are equal as fractions tie."""


class PValues(NamedTuple):
    """Two-sided p-values of no gain and of a gain within the margin, and that of a gain beyond it (TOST)."""

    differs: float
    beyond: float
    equivalent: float


class Shift(NamedTuple):
    """The Hodges-Lehmann estimate of paired gains with its 95 % interval."""

    value: float
    low: float
    high: float


def margin_of(task: str) -> float:
    """The smallest gain that matters on a task, in points."""
    return MARGINS.get(task, MARGIN)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's correction: the j-th smallest of m is the largest of (m - i + 1) p_(i) over i <= j, at most 1."""
    p, order, m = np.asarray(p_values, float), np.argsort(p_values, kind="stable"), len(p_values)
    adjusted = np.empty(m)
    adjusted[order] = np.maximum.accumulate(np.minimum(1.0, np.arange(m, 0, -1) * p[order]))
    return adjusted.tolist()


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """Benjamini and Hochberg's correction."""
    return stats.false_discovery_control(p_values).tolist() if len(p_values) else []


def shift(gains: Reals) -> Shift:
    """The Hodges-Lehmann shift of (seeds,) gains, in points.

    The ends are the k-th smallest and largest Walsh average, where k is the largest number with P(W+ < k) at most 2.5 %
    for n untied gains (Hollander and Wolfe, section 3.3).
    """
    n = len(gains)
    first, second = np.triu_indices(n)
    walsh = np.sort((gains[first] + gains[second]) / 2)
    cut = int(np.searchsorted(_tails(n), LEVEL / 2, "right"))
    low, high = (walsh[cut - 1], walsh[-cut]) if cut else (np.nan, np.nan)
    return Shift(*(np.round([np.median(walsh), low, high], _DECIMALS) + 0.0).tolist())  # no -0.0


def exact_tests(gains: Reals, margin: float) -> PValues:
    """The signed-rank tests of (seeds,) gains: against 0, and exact ones of shifted gains against the margin.

    The number of the n (n + 1) / 2 Walsh averages of two gains that are at most b is distributed like W+ if the true
    gain is b. `equivalent` is TOST, two one-sided tests (Schuirmann 1987, Journal of Pharmacokinetics and
    Biopharmaceutics 15:657-680). With ties those against the margin are the tests of n untied gains.
    """
    values = np.round(gains, _DECIMALS)
    n, slack = len(values), 0.1 * 10.0**-_DECIMALS  # an average that is equal to the bound counts as not beyond it
    upwards, tails = np.sort(values), _tails(n)

    def p_above(bound: float) -> Iterator[float]:
        for ordered in (upwards, -upwards[::-1]):
            # With how many values, from itself on, each has a Walsh average that does not exceed the bound.
            partners = np.searchsorted(ordered, 2 * (bound + slack) - ordered, "right") - np.arange(n)
            yield float(tails[np.maximum(partners, 0).sum()])

    differs = mb.signed_rank(values, "two-sided").p
    return PValues(differs, min(1.0, 2 * min(p_above(margin))), max(p_above(-margin)))


def _tails(n: int) -> Reals:
    """P(W+ <= w) for n untied gains, by w."""
    counts = np.ones(1)
    for rank in range(1, n + 1):
        longer = np.zeros(len(counts) + rank)
        longer[: len(counts)] += counts
        longer[rank:] += counts
        counts = longer / 2
    return np.cumsum(counts)


def mean_tests(mean: float, error: float, freedom: float, margin: float) -> PValues:
    """The same tests of a mean gain with its standard error, by Student's t."""

    def p_above(value: float, bound: float) -> float:
        return float(stats.t.sf((value - bound) / error, freedom))

    both = mean, -mean
    beyond = 2 * min(p_above(value, margin) for value in both)
    return PValues(2 * p_above(abs(mean), 0), min(1.0, beyond), max(p_above(value, -margin) for value in both))


def detectable_mean_gain(error: float, freedom: float, level: float) -> float:
    """The smallest true mean gain that the t test at this level finds with a probability of 80 %."""
    return error * float(stats.t.ppf(1 - level / 2, freedom) + stats.t.ppf(POWER, freedom))


def verdict(gain: float, p_values: PValues) -> str:
    """What a method is against SRC, by corrected p-values."""
    if p_values.beyond <= LEVEL and gain > 0:
        return BETTER_BY_MORE
    if p_values.equivalent <= LEVEL:
        return EQUIVALENT
    if p_values.differs > LEVEL:
        return UNDECIDED
    return BETTER if gain > 0 else WORSE


def verdicts(gains: Mapping[str, float], tests: Mapping[str, PValues], adjust: Any = holm) -> pd.DataFrame:
    """The corrected p of no gain (`p_corrected`) and the verdict (`standing`) of each method of a family."""
    corrected = [PValues(*of) for of in zip(*map(adjust, zip(*tests.values(), strict=True)), strict=True)]
    rows = {
        name: {"p_corrected": p.differs, "standing": verdict(gains[name], p)}
        for name, p in zip(tests, corrected, strict=True)
    }
    return pd.DataFrame.from_dict(rows, orient="index", columns=["p_corrected", "standing"])
