"""Writes lists, counts and ranges as words."""

from __future__ import annotations

from collections.abc import Iterable

from msda_bench.errors import printable

_NAME = 60
_MOST = 6


def counted(number: int, noun: str) -> str:
    """`1 run`, `2 runs`."""
    plural = "" if number == 1 else "s"
    return f"{number:,} {noun}{plural}"


def listed(names: Iterable[str]) -> str:
    """`a, b and c`."""
    every = list(names)
    if len(every) <= 1:
        return "".join(every)
    return f"{', '.join(every[:-1])} and {every[-1]}"


def first_of(names: Iterable[str]) -> str:
    """`a, b and 3 more`: all names, or of more than six the first five and the number of the others."""
    every = list(names)
    if len(every) <= _MOST:
        return listed(every)
    shown = every[: _MOST - 1]
    return listed([*shown, f"{len(every) - len(shown)} more"])


def spans(numbers: Iterable[int]) -> str:
    """Whole numbers as spans: `0-3, 7`."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)


def name_of(value: object) -> str:
    """The name of a method, target or source as charts and sentences show it."""
    return printable(value, _NAME)
