"""Computes means and standard errors, the same whatever the order of the values."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple


class Summary(NamedTuple):
    """Summary statistics; NaN where there are too few numbers."""

    n: int
    mean: float
    standard_error: float


NOTHING = Summary(0, math.nan, math.nan)


def mean_of(values: Iterable[float]) -> float:
    """The mean, whose sum is rounded once; NaN without values."""
    numbers = list(values)
    return math.fsum(numbers) / len(numbers) if numbers else math.nan


def tied(value: float) -> float:
    """The value to twelve significant digits, so that means that are equal as fractions are equal."""
    return float(f"{value:.12g}")


def summarize(values: Iterable[float]) -> Summary:
    """Computes the mean and its standard error."""
    numbers = list(values)
    n, mean = len(numbers), mean_of(numbers)
    if n < 2:  # noqa: PLR2004 - one number has no spread
        return Summary(n, mean, math.nan)
    spread = math.hypot(*(number - mean for number in numbers)) if min(numbers) < max(numbers) else 0.0
    return Summary(n, mean, spread / math.sqrt(n * (n - 1)))
