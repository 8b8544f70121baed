"""Finds suspicious numbers without knowing what they measure: codes for gaps, other units, copies, recordings."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from msda_bench.api import Array

_NINES = {float(sign + digit * length) for sign in ("", "-") for digit in "789" for length in range(2, 10)}
_CODES = _NINES | {-1.0, -9.0, -200.0, 9.0, 32767.0, 65535.0, -32768.0, 2147483647.0, -2147483648.0}
"""Numbers that often stand for a missing value."""
_FILL = 1e19
"""Larger numbers are fill values, such as 1e20 or 9.96921e+36."""
_PEELED = 3
"""Numbers at each end that may all stand for gaps, such as -9999 and -999."""
_KNOWN, _UNKNOWN = (3.0, 1.0, 3), (10.0, 5.0, 5)
"""How far a code lies from the median and from the nearest other number, in quartile distances; how often it occurs."""
_FEWEST = 10
"""Among fewer different other numbers a code is not certain."""
_FACTOR = 4.0
"""Domains whose medians differ by more may have another unit."""
_COPIES = 0.02
"""The share of rows that are copies of others, from which on they are named; by chance fewer must be expected."""
_SLOW = 0.1
"""The squared difference of neighbours is at most this part of that of any two rows."""


class Gap(NamedTuple):
    """A number that may stand for a missing value."""

    value: float
    times: int
    low: float
    high: float
    certain: bool


def gaps_among(values: Array, counts: Array) -> list[Gap]:
    """Numbers that repeat far outside of all others.

    Args:
        values: different finite numbers, in order.
        counts: how often each occurs.
    """
    best: list[Gap] = []
    for low, high in itertools.product(range(_PEELED), repeat=2):
        peeled = low + high
        if peeled > len(best) and peeled + 2 <= len(values):
            best = _outside(values, counts, low, high) or best
    return best


def _outside(values: Array, counts: Array, low: int, high: int) -> list[Gap]:
    """The numbers at both ends, if all of them may stand for gaps."""
    kept = slice(low, len(values) - high)
    rest = values[kept]
    first, middle, third = _quartiles(rest, counts[kept])
    spread = third - first
    if not spread:
        spread = float(np.subtract(*np.quantile(rest, [0.75, 0.25]))) or abs(middle) or 1.0
    least, greatest = float(rest[0]), float(rest[-1])
    gaps = []
    for place in [*range(low), *range(len(values) - high, len(values))]:
        value = float(values[place])
        count = int(counts[place])
        known = value in _CODES or abs(value) >= _FILL
        from_middle, from_nearest, times = _KNOWN if known or value == 0 else _UNKNOWN
        nearest = least if place < low else greatest
        if abs(value - middle) < from_middle * spread:
            return []
        if abs(value - nearest) < from_nearest * spread:
            return []
        if count < times:
            return []
        gaps.append(Gap(value, count, least, greatest, known and len(rest) >= _FEWEST))
    return gaps


def _quartiles(values: Array, counts: Array) -> tuple[float, float, float]:
    ends = np.cumsum(counts)
    places = np.searchsorted(ends, ends[-1] * np.array([0.25, 0.5, 0.75]))
    first, middle, third = values[places].tolist()
    return first, middle, third


class Unit(NamedTuple):
    """Domains whose numbers are a factor away from those of the others."""

    domains: tuple[int, ...]
    factor: float


def other_unit(medians: Array, spreads: Array) -> Unit | None:
    """The smaller set of domains in which numbers are as much larger as they vary more, if there are two such sets.

    Args:
        medians: of each domain, of one sign; NaN where it is not known.
        spreads: of each domain, above 0.
    """
    known = np.flatnonzero(np.isfinite(medians) & (medians != 0) & (spreads > 0))
    if len(known) < 2 or np.ptp(np.sign(medians[known])):  # noqa: PLR2004 - one unit and another
        return None
    sizes = abs(medians[known])
    order = known[np.argsort(sizes, kind="stable")]
    logs = np.log(abs(medians[order]))
    steps = np.diff(logs)
    cut = int(np.argmax(steps)) + 1
    largest_step = steps[cut - 1]
    if largest_step < np.log(_FACTOR):
        return None
    if max(np.ptp(logs[:cut]), np.ptp(logs[cut:])) > largest_step / 2:
        return None
    low = order[:cut]
    high = order[cut:]
    factor = float(np.median(medians[high]) / np.median(medians[low]))
    wider = float(np.median(spreads[high]) / np.median(spreads[low]))
    if not factor / 3 < wider < factor * 3:
        return None
    if len(high) <= len(low):
        return Unit(tuple(high.tolist()), factor)
    return Unit(tuple(low.tolist()), 1 / factor)


def factor_text(factor: float) -> str:
    """How many times, such as `14 times`, or `1/14` of it."""
    return f"{factor:.3g} times" if factor > 1 else f"1/{1 / factor:.3g} of"


def moves_slowly(columns: Sequence[Array], domains: Array) -> bool:
    """Whether rows that follow each other in a domain are nearly equal, by most columns.

    That compares the squared differences of neighbours with those of any two rows (von Neumann's ratio).
    """
    ratios = list(_ratios(columns, domains))
    return len(ratios) > 1 and float(np.median(ratios)) < _SLOW


def _ratios(columns: Sequence[Array], domains: Array) -> Iterator[float]:
    order = np.argsort(domains, kind="stable")
    same = np.diff(domains[order]) == 0
    for values in columns:
        mine = values[order]
        steps = np.diff(mine)[same]
        steps = steps[np.isfinite(steps)]
        there = np.isfinite(values)
        spread = within(values[there], domains[there])
        if len(steps) and spread > 0:
            yield float((steps**2).mean() / (2 * spread))


def between(values: Array, groups: Array, domains: Array) -> float:
    """The share of the variance within domains that lies between groups, as an analysis of variance has it.

    Args:
        values: NaN where one is missing.
        groups: numbers from 0.
        domains: numbers from 0.
    """
    there = np.isfinite(values)
    inside = within(values[there], groups[there])
    whole = within(values[there], domains[there])
    return 1 - inside / whole if whole > 0 else np.nan


def within(values: Array, groups: Array) -> float:
    """The variance of values around the means of their groups."""
    counts = np.bincount(groups)
    means = np.bincount(groups, values) / np.maximum(counts, 1)
    free = len(values) - np.count_nonzero(counts)
    if free <= 0:
        return np.nan
    squares = (values - means[groups]) ** 2
    return float(squares.sum() / free)


def order_of(labels: Array, *, regression: bool) -> tuple[float, float]:
    """How much labels (n,) of one domain are in order, and how much they would be if they were sorted."""
    n = len(labels)
    if not regression:
        # Neighbours with different labels: how many fewer than in a random order, and how many there would be.
        chance = n - (np.bincount(labels) ** 2).sum() / n
        changes = (np.diff(labels) != 0).sum()
        return chance - changes, chance
    if not np.ptp(labels):
        return 0.0, 0.0
    ranks = labels.argsort(kind="stable").argsort()
    correlation = np.corrcoef(ranks, np.arange(n))[0, 1]
    return n * abs(correlation), n


def prints_of(columns: Sequence[Array]) -> Array:
    """A number for each row, equal for equal rows, of columns of whole numbers."""
    weights = np.random.default_rng(0).integers(1, 1 << 63, len(columns), np.uint64)
    prints = np.zeros(len(columns[0]), np.uint64)
    for column, weight in zip(columns, weights, strict=True):
        prints += column.astype(np.uint64) * (weight | np.uint64(1))
    return prints


def copies_among(columns: Sequence[Array]) -> tuple[int, Array]:
    """How many rows are copies of others, and which rows occur more than once.

    None are counted where rows of so few different values may be equal by chance.
    """
    prints = prints_of(columns)
    _, first, places, counts = np.unique(prints, return_index=True, return_inverse=True, return_counts=True)
    chances = []
    for column in columns:
        shares = np.bincount(column[first] + 1) / len(first)
        # The exponent allows for columns that depend on each other.
        chances.append((shares**2).sum() ** 0.75)
    by_chance = np.prod(chances) * len(first)
    copies = len(prints) - len(first)
    if copies <= _COPIES * len(prints) or by_chance > _COPIES:
        return 0, np.zeros(len(prints), bool)
    return copies, counts[places.reshape(-1)] > 1
