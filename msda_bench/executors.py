"""Everything that the author of an executor imports; like `msda_bench.api` it is kept stable."""

from msda_bench.atomic import named, temporary
from msda_bench.component.base import component
from msda_bench.errors import BenchError, Interrupted, StoreError, describe
from msda_bench.marker import hookimpl
from msda_bench.running.events import CellFinished, Event, JobStarted, Noted
from msda_bench.running.execute import Executor, JobRunner, Setup, stored_of
from msda_bench.running.failure import retry
from msda_bench.running.interrupt import Interrupt
from msda_bench.running.jobs import Job
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
