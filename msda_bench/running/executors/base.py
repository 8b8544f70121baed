"""What every executor does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from msda_bench.running.events import Event
from msda_bench.running.interrupt import Interrupt
from msda_bench.running.jobs import Job
from msda_bench.store.store import Store


class Executor(Protocol):
    """Trains jobs, somewhere, in some order."""

    def run(self, jobs: Iterable[Job], store: Store, interrupt: Interrupt) -> Iterator[Event]:
        """Starts the jobs and tells what happens, until all are done or an interrupt is requested.

        Every cell ends with one `CellFinished`, told after its record is in the store. When the iterator is closed or
        ends, nothing that it started is left running.

        Raises:
            BenchError: nothing can be trained or stored at all.
        """
        ...
