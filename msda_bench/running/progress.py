"""Shows a run's progress: a live bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.text import Text

from msda_bench.errors import LONGEST_LINE, printable
from msda_bench.running.best import LiveBest
from msda_bench.running.events import CellFinished, Event, Noted
from msda_bench.running.observer import Observer
from msda_bench.running.pace import Pace
from msda_bench.running.survey import Survey

EVERY = 5.0
"""Seconds between two plain lines, at least."""


def progress(console: Console) -> Observer:
    """The observer that suits where the console writes to."""
    return LiveProgress(console) if console.is_terminal else PlainProgress(console)


class _Progress:
    """What both ways share: the counts, the leaders, and lines on what went wrong."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._names: dict[str, str] = {}

    def begin(self, survey: Survey) -> None:
        """See `Observer`."""
        self._pace = Pace(len(survey.missing), self._clock)
        self._best = LiveBest(survey)
        for cell in survey.selected:
            self._names.setdefault(cell.key, f"{cell.experiment}: {cell.method}, {cell.target}, seed {cell.seed}")

    def see(self, event: Event) -> None:
        """See `Observer`."""
        if isinstance(event, Noted):
            self._print(event.line)
        elif isinstance(event, CellFinished):
            self._pace.count(well=event.status == "ok")
            self._best.finish(event.key, event.outcome)
            if event.status != "ok":
                kept = f"; traceback in {event.traceback}" if event.traceback else ""
                self._print(f"{self._names[event.key]}: {event.status}: {event.message}{kept}")

    def end(self) -> None:
        """See `Observer`."""

    def _print(self, line: str) -> None:
        self._console.print(Text(printable(line, LONGEST_LINE)), soft_wrap=True)

    def _leaders(self) -> str:
        leaders = [f"{name}: {leader}" for name, leader in self._best.leaders().items()]
        return f"best so far: {'; '.join(leaders)}" if leaders else ""


class PlainProgress(_Progress):
    """A line at the start and at the end, and at most one in five seconds between."""

    def begin(self, survey: Survey) -> None:
        """See `Observer`."""
        super().begin(survey)
        self._print(f"{len(survey.missing)} cells to train, {survey.stored} stored")
        self._last = self._clock()
        self._told = ""

    def see(self, event: Event) -> None:
        """See `Observer`."""
        super().see(event)
        if isinstance(event, CellFinished) and self._clock() - self._last >= EVERY:
            self._last = self._clock()
            self._tell()

    def end(self) -> None:
        """See `Observer`."""
        self._tell()

    def _tell(self) -> None:
        counts = f"{self._pace.done}/{self._pace.cells}"
        if counts != self._told:  # the end may come right after a line
            self._told = counts
            self._print("; ".join(filter(None, (self._pace.describe(), self._leaders()))))


class LiveProgress(_Progress):
    """A bar with the counts and the leaders below it, drawn again several times a second."""

    def begin(self, survey: Survey) -> None:
        """See `Observer`."""
        super().begin(survey)
        self._live = Live(console=self._console, get_renderable=self._draw, refresh_per_second=4, transient=True)
        self._live.start()

    def end(self) -> None:
        """See `Observer`."""
        self._live.stop()

    def _draw(self) -> Group:
        bar = ProgressBar(total=max(1, self._pace.cells), completed=self._pace.done, width=40)
        lines = filter(None, (self._pace.describe(), self._leaders()))
        return Group(bar, *map(Text, lines))
