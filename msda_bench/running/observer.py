"""Who watches a run."""

from __future__ import annotations

from typing import Protocol

from msda_bench.running.events import Event
from msda_bench.running.survey import Survey


class Observer(Protocol):
    """Is told of a run's course, in this order: `begin`, any number of `see`, `end`, always in the same thread."""

    def begin(self, survey: Survey) -> None:
        """Training begins."""

    def see(self, event: Event) -> None:
        """Something happened."""

    def end(self) -> None:
        """Training ended, well or not."""


class Silent:
    """Watches nothing."""

    def begin(self, survey: Survey) -> None:
        """See `Observer`."""

    def see(self, event: Event) -> None:
        """See `Observer`."""

    def end(self) -> None:
        """See `Observer`."""
