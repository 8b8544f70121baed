"""Mean and standard error of the runs of one method."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from msda_bench.stats.exact import Number, scaled_integers


@dataclass(frozen=True)
class Summary:
    """Some numbers in short.

    Attributes:
        n: how many there are.
        mean: their mean; None where there are none.
        standard_error: of the mean, from the sample variance (ddof = 1); None below two numbers.
    """

    n: int
    mean: float | None
    standard_error: float | None


def summarize(values: Iterable[Number]) -> Summary:
    """Takes the mean and its standard error exactly, rounding only the results, so that no order of values matters.

    Raises:
        ValueError: a value is NaN or infinite.
    """
    numerators, scale = scaled_integers(values)
    n, total = len(numerators), sum(numerators)
    if n == 0:
        return Summary(0, None, None)
    mean = total / (n * scale)
    if n == 1:
        return Summary(1, mean, None)
    squares = n * sum(number * number for number in numerators) - total * total
    return Summary(n, mean, math.sqrt(Fraction(squares, n * n * (n - 1) * scale * scale)))
