"""The store: results are written once and never lost."""

from msda_bench.store.record import Curves, Outcome, Record
from msda_bench.store.store import Store

__all__ = ["Curves", "Outcome", "Record", "Store"]
