"""Trains through a dask cluster: on all of its machines, which share the result folder."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from importlib.util import find_spec

from msda_bench.executors import BenchError, Event, Executor, Interrupt, Job, Store, component, hookimpl

_ADDRESS = re.compile(r"[a-z]+://\S+:[0-9]{1,5}")


@hookimpl
def msda_executors() -> list[type[Executor]]:
    """The executor of this package."""
    return [DaskExecutor]


@component
class DaskExecutor(Executor):
    """The workers of a dask cluster; without --scheduler, one in this process."""

    name = "dask"
    has_scheduler = True

    @classmethod
    def check(cls, scheduler: str | None) -> None:
        """See `Executor`."""
        if find_spec("distributed") is None:
            raise BenchError("--executor dask needs dask, which is not installed: pip install '.[dask]' in the clone")
        if scheduler is not None and not _ADDRESS.fullmatch(scheduler):
            raise BenchError(f"--scheduler {scheduler!r}: write protocol://host:port, such as tcp://node1:8786")

    def run(self, jobs: Iterable[Job], store: Store, interrupt: Interrupt) -> Iterator[Event]:
        """See `Executor`."""
        from msda_bench_dask.dispatch import train

        return train(self, jobs, store, interrupt)
