"""Tables and arrays of the user's own, and tasks that are tables."""

from msda_bench_builtin.datasets.tables.arrays import Arrays
from msda_bench_builtin.datasets.tables.table import Table

__all__ = ["Arrays", "Table"]
