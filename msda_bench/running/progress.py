"""Shows a run's progress: a live bar on a terminal, otherwise a line now and then."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, RenderableColumn, TimeElapsedColumn
from rich.table import Column
from rich.text import Text

from msda_bench.errors import LONGEST_LINE, printable
from msda_bench.running.jobs import CellFinished, Event, JobStarted, Noted
from msda_bench.running.runner import MissingRuns, Observer
from msda_bench.suite.run_spec import RunSpec

EVERY = 5.0
"""Seconds between two plain lines, at least."""
_FEW = 3
"""Cells that must have ended after the first wave before the time left is estimated."""
_MOST_IN_WAVE = 4
_BAR = 12
"""The width of the bar in characters, so that time and run stand beside it in a line of 80."""
_LONG = 3.0
"""Seconds without a first result after which a live bar says that the machine compiles."""


class TimeLeft:
    """Estimates the time left from the cells that ended, each weighted by its planned steps.

    The first wave is not measured: as many cells as were running before any ended, at most a quarter of all. It
    includes one-time costs such as compiling, and parallel cells end in bursts. `rich.progress` is not used because its
    estimate starts with the first cell that ended.
    """

    def __init__(self, cells: Mapping[str, RunSpec], clock: Callable[[], float]) -> None:
        self._clock = clock
        # Up to a factor; the epochs if the schemes choose how many steps an epoch has.
        are_counted = all(cell.training.steps for cell in cells.values())
        self._steps: dict[str, int] = {}
        for key, cell in cells.items():
            steps = cell.training.steps if are_counted else None
            self._steps[key] = (cell.training.epochs or 1) * (steps or 1)
        self._left = sum(self._steps.values())
        self._begun = self._ended = 0
        self._last = self._origin = clock(), self._left

    def start(self, keys: Iterable[str]) -> None:
        """Records that a job with these cells was handed out."""
        if not self._ended:
            self._begun += len(tuple(keys))

    def finish(self, key: str) -> None:
        """Records that a cell ended, with or without a result."""
        self._ended += 1
        self._left -= self._steps.pop(key, 0)
        self._last = self._clock(), self._left
        if self._ended <= self._wave:
            self._origin = self._last

    def describe(self) -> str:
        """`0:12:34 left`; empty while too few cells have ended, and when all have."""
        now, left_now = self._last
        began, left_then = self._origin
        seconds = now - began
        steps = left_then - left_now
        if not self._steps or self._ended < self._wave + _FEW or seconds <= 0 or steps <= 0:
            return ""
        left = self._left * seconds / steps - (self._clock() - now)
        return f"{timedelta(seconds=max(0, round(left)))} left"

    @property
    def _wave(self) -> int:
        return min(self._begun, (self._ended + len(self._steps)) // _MOST_IN_WAVE)


class _Shown(Observer):
    """The common part: the counts, and lines on faults."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._names: dict[str, str] = {}
        self._started = ""
        self._cells = self._ended = self._bad = 0

    def begin(self, missing: MissingRuns) -> None:
        self._cells = len(missing.to_train)
        self._time = TimeLeft(missing.to_train, self._clock)
        for cell in missing.selected:
            self._names.setdefault(cell.key, f"{cell.experiment}: {cell.method}, {cell.target}, seed {cell.seed}")

    def see(self, event: Event) -> None:
        if isinstance(event, Noted):
            self._print(event.line)
        elif isinstance(event, JobStarted):
            self._time.start(event.keys)
            self._started = self._names[next(iter(event.keys))]
        else:
            self._finish(event)

    def _finish(self, event: CellFinished) -> None:
        self._ended += 1
        self._time.finish(event.key)
        if event.status != "ok":
            self._bad += 1
            kept = f"; traceback in {event.traceback}" if event.traceback else ""
            self._print(f"{self._names[event.key]}: {event.status}: {event.message}{kept}")

    def _rest(self) -> list[str]:
        """The texts shown after the count."""
        bad = f"{self._bad} failed or diverged" if self._bad else ""
        return [part for part in (self._time.describe(), bad) if part]

    def _print(self, line: str) -> None:
        self._console.print(Text(printable(line, LONGEST_LINE)), soft_wrap=True)


class PlainProgress(_Shown):
    """A line at the start and at the end, and at most one in five seconds in between."""

    def begin(self, missing: MissingRuns) -> None:
        """See `Observer`."""
        super().begin(missing)
        self._print(f"{self._cells} runs to train, {missing.stored} stored")
        self._last = self._began = self._clock()
        self._reported = 0

    def _finish(self, event: CellFinished) -> None:
        super()._finish(event)
        if self._clock() - self._last >= EVERY:
            self._last = self._clock()
            self.end()

    def end(self) -> None:
        """See `Observer`."""
        if self._ended != self._reported:  # unless the last line already shows it
            self._reported = self._ended
            passed = timedelta(seconds=round(self._clock() - self._began))
            self._print(", ".join([f"{self._ended}/{self._cells} runs in {passed}", *self._rest()]))


class LiveProgress(_Shown):
    """A bar, the count, the time and the run that was started last."""

    def begin(self, missing: MissingRuns) -> None:
        """See `Observer`."""
        super().begin(missing)
        self._began = self._clock()
        # The text takes what the other columns leave of the line, and is cut there.
        rest = RenderableColumn(self, table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis"))
        columns = BarColumn(bar_width=_BAR), MofNCompleteColumn(), TimeElapsedColumn(), rest
        self._bar = Progress(
            *columns, console=self._console, get_time=self._clock, refresh_per_second=4, transient=True, expand=True
        )
        self._task = self._bar.add_task("runs", total=self._cells)
        self._bar.start()

    def __rich__(self) -> Text:
        """The texts shown after the time."""
        return Text(", ".join(self._rest()))

    def _rest(self) -> list[str]:
        """Also which run was started last, or why the first one takes long."""
        compiles = self._started and not self._ended and self._clock() - self._began >= _LONG
        now = "compiling for this machine, once" if compiles else self._started
        return [part for part in (*super()._rest(), now) if part]

    def _finish(self, event: CellFinished) -> None:
        super()._finish(event)
        self._bar.advance(self._task)

    def end(self) -> None:
        """See `Observer`."""
        self._bar.stop()
