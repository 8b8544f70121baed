"""The store: results are written once and never lost."""

from msda_bench.store.record import Curves, Outcome, Record, Status
from msda_bench.store.store import Store

__all__ = ["Curves", "Outcome", "Record", "Status", "Store"]
