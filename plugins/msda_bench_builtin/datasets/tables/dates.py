"""Recognises columns that hold dates or times, as texts or as numbers."""

from __future__ import annotations

import re

import numpy as np

from msda_bench.api import Array
from msda_bench_builtin.datasets.tables.read import Column

_TIME = r"\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?(\s?[ap]\.?m\.?)?"
_ZONE = r"(\s?(z|utc|gmt|[+-]\d{2}:?\d{2}))?"
_YEAR = r"(18|19|20|21)\d{2}"
_MONTH = r"(0?[1-9]|1[0-2])"
_DAY = r"(0?[1-9]|[12]\d|3[01])"
_NAME = r"[^\W\d_]{3,9}\.?"
_DAYS = "|".join((
    rf"{_YEAR}(?P<a>[-/.]){_MONTH}((?P=a){_DAY})?",
    rf"{_MONTH}(?P<b>[-/.]){_DAY}(?P=b)({_YEAR}|\d\d)",
    rf"{_DAY}(?P<c>[-/.]){_MONTH}(?P=c)({_YEAR}|\d\d)",
    rf"({_NAME},?\s)?{_DAY}\.?[-\s]{_NAME},?[-\s]({_YEAR}|\d\d)",
    rf"{_NAME}\s{_DAY},?\s{_YEAR}",
    rf"{_YEAR}-?w\d\d",
    rf"{_YEAR}[-\s]?q[1-4]",
))  # fmt: skip
_DATE = re.compile(rf"\s*(({_DAYS})([t\s]\s?{_TIME}{_ZONE})?|{_TIME}{_ZONE})\s*", re.IGNORECASE)
"""A day, a day and a time, or a time, as people and programs write them."""
_SECONDS = (9e8, 2.1e9)
"""Seconds since 1970 from 1998 to 2036."""
_UNITS = (1.0, 1e3, 1e6, 1e9)
"""Units of a second in a time stamp: seconds, milliseconds, microseconds, nanoseconds."""
_FEWEST = 10
"""Fewer different numbers are not taken for times."""


def date_in(column: Column) -> str | None:
    """An example, if each value of a column is a date or a time; numbers may be 20240131 or seconds since 1970."""
    numbers = column.numbers
    if np.isnan(numbers).all():
        return column.texts[0] if all(map(_DATE.fullmatch, column.texts)) else None
    if not np.isfinite(numbers).all() or len(numbers) < _FEWEST:
        return None
    if _calendar(numbers):
        return column.texts[0]
    first, last = _SECONDS
    for unit in _UNITS:
        if ((numbers >= first * unit) & (numbers <= last * unit)).all():
            return column.texts[0]
    return None


def _calendar(numbers: Array) -> bool:
    """Whether all are days as eight digits, such as 20240131."""
    if (numbers % 1).any() or numbers.min() < 18000101 or numbers.max() > 21991231:  # noqa: PLR2004
        return False
    month = numbers // 100 % 100
    day = numbers % 100
    return bool(np.isin(month, range(1, 13)).all() and np.isin(day, range(1, 32)).all())
