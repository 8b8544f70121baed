"""How far a run is, and how long it will take."""

from __future__ import annotations

import time
from collections.abc import Callable

_TEN = 10
_HOUR = 3600
_MINUTE = 60


class Pace:
    """Counts cells as they end.

    Args:
        cells: how many the run has to train.
        clock: seconds from any origin.

    Attributes:
        cells: the same.
        done: how many ended, well or not.
        failed: how many of these gave no result, or diverged.
    """

    def __init__(self, cells: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.cells = cells
        self.done = 0
        self.failed = 0
        self._clock = clock
        self._started = clock()

    def count(self, *, well: bool) -> None:
        """One more ended."""
        self.done += 1
        self.failed += not well

    def describe(self) -> str:
        """One line: cells, rate, time left, failures; no rate before the first cell has ended."""
        parts = [f"{self.done}/{self.cells} cells"]
        seconds = self._clock() - self._started
        if self.done and seconds > 0:
            rate = self.done / seconds
            parts.append(f"{_short(rate)}/s" if rate >= 1 else f"{_short(1 / rate)} s each")
            parts.append(f"{duration((self.cells - self.done) / rate)} left")
        if self.failed:
            parts.append(f"{self.failed} failed or diverged")
        return ", ".join(parts)


def _short(number: float) -> str:
    return f"{number:.1f}" if number < _TEN else f"{number:.0f}"


def duration(seconds: float) -> str:
    """`1:02:03`, or `2:03` below an hour."""
    whole = round(seconds)
    hours, rest = divmod(whole, _HOUR)
    minutes = f"{rest // _MINUTE:02}" if hours else f"{rest // _MINUTE}"
    return f"{f'{hours}:' if hours else ''}{minutes}:{rest % _MINUTE:02}"
