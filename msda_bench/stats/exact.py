"""Numbers as integers over one denominator, so that round-off neither makes nor breaks a tie."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, TypeAlias, cast

Number: TypeAlias = int | float | Fraction
"""What the statistics take; a float stands for exactly the binary fraction that it holds."""


def scaled_integers(values: Iterable[Number]) -> tuple[list[int], int]:
    """Writes values as integers over their least common denominator.

    Args:
        values: numbers, numpy's and `decimal.Decimal` included.

    Returns:
        The numerators, in order, and the denominator.

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
