"""Writes the cells of tables: functions of a unit and of the values of a row, as texts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from msda_bench.component.task import MetricInfo
from msda_bench.errors import printable
from msda_bench.results.decision import NOT_SIGNIFICANT, OPPOSITE, SAME, UNKNOWN, WORSE

# Private characters stand for markup until a table is rendered; they are removed from outside text.
BOLD, SECOND, SMALL = ("\ue000", "\ue001"), ("\ue002", "\ue003"), ("\ue004", "\ue005")
MARKS = {"better": " +", "worse": " -"}
"""Marks of gains over the baseline, by outcome."""
_LARGE = 1000
_LEAST_P = 0.0001
_LEAST_PERCENT = 0.05
"""The smallest percentage that is shown as more than 0."""


@dataclass(frozen=True)
class Unit:
    """The unit of a table's numbers, and the power of ten by which they are scaled; numbers have two decimals."""

    label: str = ""
    exponent: int = 0

    @classmethod
    def of(cls, measure: MetricInfo, means: Iterable[float]) -> Unit:
        """Percent, or for other metrics a scale that gives the largest mean one to three digits before the point."""
        if measure.percent:
            return cls(measure.unit)
        largest = max((abs(mean) for mean in means if not math.isnan(mean)), default=0.0)
        if largest == 0 or 1 <= largest < _LARGE:
            return cls(measure.unit)
        exponent = math.floor(math.log10(largest)) - 1
        times = f", times 10^{-exponent}"
        return cls(f"{measure.label}{times}{measure.unit.removeprefix(measure.label)}", exponent)

    def show(self, value: float | None, *, signed: bool = False) -> str:
        """Formats a number, with three significant digits if it is far larger than the others; `-` for None or NaN."""
        if value is None or pd.isna(value):
            return "-"
        number = value * 10.0**-self.exponent
        text = f"{number:.2f}" if abs(number) < _LARGE else f"{number:.3g}"
        return f"+{text}" if signed and number >= 0 else text

    def interval(self, low: float, high: float) -> str:
        """Formats an interval as `low .. high`; `-` if there is none."""
        return "-" if pd.isna(low) or pd.isna(high) else f"{self.show(low)} .. {self.show(high)}"


PLAIN = Unit()


def show_p(p: Any) -> str:
    """Formats a p-value with four decimals, or as `<.0001`."""
    if pd.isna(p):
        return "-"
    return f"{p:.4f}" if p >= _LEAST_P else "<.0001"


def text(_: Unit, *values: Any) -> str:
    """The different ones of some texts."""
    return " / ".join(dict.fromkeys(map(printable, values)))


def count(_: Unit, value: Any) -> str:
    """A whole number."""
    return "-" if pd.isna(value) else str(value)


def number(unit: Unit, value: Any) -> str:
    """A number in its unit."""
    return unit.show(value)


def difference(unit: Unit, value: Any, mark: str = "") -> str:
    """A number with its sign."""
    return unit.show(value, signed=True) + mark


def interval(unit: Unit, low: Any, high: Any) -> str:
    """An interval."""
    return unit.interval(low, high)


def mean(unit: Unit, value: Any, error: Any, rank: Any, mark: str, runs: str) -> str:
    """`mean +- standard error`, with markup for the best and second; one run gives its mean, none gives `-`."""
    if pd.isna(value):
        return "-"
    start = end = ""
    if pd.notna(rank):
        start, end = {1: BOLD, 2: SECOND}.get(int(rank), ("", ""))
    more = "" if pd.isna(error) else f"{SMALL[0]} +- {unit.show(error)}{SMALL[1]}"
    of_runs = f" ({runs})" if runs else ""
    return f"{start}{unit.show(value)}{end}{more}{mark}{of_runs}"


def number_with_error(unit: Unit, value: Any, error: Any, rest: str = "") -> str:
    """`number +- error`."""
    more = "" if pd.isna(error) else f" +- {unit.show(error)}"
    return f"{unit.show(value)}{more}{rest}"


def p_value(_: Unit, p: Any) -> str:
    """A p-value."""
    return show_p(p)


def p_in_brackets(_: Unit, p: Any, outcome: str, reason: str, n: float) -> str:
    """A p-value, in brackets where there are too few pairs to be significant."""
    few = outcome == UNKNOWN and reason != NOT_SIGNIFICANT
    return f"({show_p(p)})" if n and few else show_p(p)


def pair(_: Unit, first: str, second: str, outcome: str) -> str:
    """Two methods, the better one first: `a > b`, `a = b` or `a against b`."""
    if outcome == WORSE:
        first, second = second, first
    sign = "against"
    if outcome in OPPOSITE:
        sign = ">"
    elif outcome == SAME:
        sign = "="
    return f"{printable(first)} {sign} {printable(second)}"


def difference_of_pair(unit: Unit, value: Any, outcome: str) -> str:
    """The difference of a pair as `pair` writes it."""
    return unit.show(-value if outcome == WORSE else value, signed=True)


def interval_of_pair(unit: Unit, low: Any, high: Any, outcome: str) -> str:
    """The interval of that difference."""
    return unit.interval(-high, -low) if outcome == WORSE else unit.interval(low, high)


def of_planned(_: Unit, n: Any, planned: Any) -> str:
    """`n/planned`."""
    return "-" if pd.isna(n) or pd.isna(planned) else f"{n}/{planned}"


def of_tested(_: Unit, n: Any, tested: Any) -> str:
    """`n/tested`; `-` where nothing was tested."""
    return f"{n}/{tested}" if tested else "-"


def gain_with_mark(unit: Unit, value: Any, outcome: str) -> str:
    """A gain, with a mark where it is significant."""
    return unit.show(value, signed=True) + MARKS.get(outcome, "")


def share(_: Unit, part: Any, total: Any) -> str:
    """A percentage as `12.3`, or as `<0.1`; empty where nothing was counted."""
    if pd.isna(part):
        return ""
    percent = 100 * part / total
    return "<0.1" if 0 < percent < _LEAST_PERCENT else f"{percent:.1f}"


def domain(_: Unit, name: str, target: str) -> str:
    """A domain beside a target."""
    return "itself" if name == target else printable(name)


def decimals(digits: int) -> Callable[[Unit, Any], str]:
    """What writes numbers with so many decimals, whatever the unit."""

    def show(_: Unit, value: Any) -> str:
        return "-" if pd.isna(value) else f"{value:.{digits}f}"

    return show


def difference_if(unit: Unit, value: Any, is_so: bool) -> str:  # noqa: FBT001 - a value of the row
    """A difference where it is comparable."""
    return unit.show(value, signed=True) if is_so else ""


def z_if(_: Unit, value: Any, is_so: bool) -> str:  # noqa: FBT001 - a value of the row
    """A z where it is comparable."""
    if not is_so:
        return ""
    return "-" if pd.isna(value) else f"{value:+.1f}"
