"""How the cost of a step grows with the number of sources."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import scipy.optimize


class Growth(NamedTuple):
    """The cost a + b k + c k^2 of k sources, in seconds."""

    fixed: float
    linear: float
    square: float

    def at(self, k: float) -> float:
        """The cost of k sources."""
        return self.fixed + self.linear * k + self.square * k * k

    def square_is(self, share: float) -> float:
        """The k from which on the part with k^2 is at least that share of the whole; infinite if never."""
        if self.square == 0:
            return math.inf
        a, b, c = share * self.fixed, share * self.linear, (1 - share) * self.square
        return (b + math.sqrt(b * b + 4 * a * c)) / (2 * c)


def fit(counts: Sequence[int], seconds: Sequence[float]) -> Growth:
    """The growth, none of its parts negative, with the least sum of squared relative errors."""
    parts = np.vander(np.array(counts, dtype=float), 3, increasing=True) / np.array(seconds)[:, None]
    scale = parts.max(0)
    found, _ = scipy.optimize.nnls(parts / scale, np.ones(len(counts)))
    return Growth(*(found / scale).tolist())


def largest_error(growth: Growth, measured: Mapping[int, float]) -> float:
    """Of the fit, relative to what was measured."""
    return max(abs(growth.at(k) / seconds - 1) for k, seconds in measured.items())


def exponent(measured: Mapping[int, float], first: int) -> float:
    """The slope of log cost over log k, from `first` to the largest k."""
    last = max(measured)
    return math.log(measured[last] / measured[first]) / math.log(last / first)
