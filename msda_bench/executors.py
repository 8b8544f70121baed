"""Everything that the author of an executor imports; like `msda_bench.api` it is kept stable."""

from msda_bench.atomic import named, temporary
from msda_bench.component.base import component
from msda_bench.errors import BenchError, Interrupted, StoreError, describe
from msda_bench.marker import hookimpl
from msda_bench.running.execute import Executor, Interrupt, JobRunner, Setup, stored_of
from msda_bench.running.jobs import CellFinished, Event, Job, JobStarted, Noted, retry
from msda_bench.running.local import Crew, Slot, slots
from msda_bench.store.store import Store

__all__ = [
    "BenchError",
    "CellFinished",
    "Crew",
    "Event",
    "Executor",
    "Interrupt",
    "Interrupted",
    "Job",
    "JobRunner",
    "JobStarted",
    "Noted",
    "Setup",
    "Slot",
    "Store",
    "StoreError",
    "component",
    "describe",
    "hookimpl",
    "named",
    "retry",
    "slots",
    "stored_of",
    "temporary",
]
