"""Computes means and standard errors exactly, rounding each once."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import NamedTuple

from msda_bench.results.signed_rank import Number, scaled_integers


class Summary(NamedTuple):
    """Summary statistics; NaN where there are too few numbers."""

    n: int
    mean: float
    standard_error: float


def summarize(values: Iterable[Number], unit: Fraction = Fraction(1)) -> Summary:
    """Computes the mean and its standard error of values in multiples of `unit`.

    Only the results are rounded, so the order of the values does not matter.

    Raises:
        ValueError: a value is NaN or infinite.
    """
    numerators, scale = scaled_integers(values)
    n, total, scale = len(numerators), unit.numerator * sum(numerators), unit.denominator * scale
    if n == 0:
        return Summary(0, math.nan, math.nan)
    mean = total / (n * scale)
    if n == 1:
        return Summary(1, mean, math.nan)
    squares = n * sum(number * number for number in numerators) * unit.numerator**2 - total * total
    variance = Fraction(squares, n * n * (n - 1) * scale * scale)
    try:
        return Summary(n, mean, math.sqrt(variance))
    except OverflowError:  # the standard error is a float64, but its square is not
        return Summary(n, mean, math.sqrt(variance / 4**512) * 2.0**512)
