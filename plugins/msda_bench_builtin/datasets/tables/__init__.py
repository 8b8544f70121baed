"""Tables and arrays of the user's own, and tasks that are tables."""

from msda_bench_builtin.datasets.tables.arrays import Arrays
from msda_bench_builtin.datasets.tables.table import Table
from msda_bench_builtin.datasets.tables.tasks import Hospitals, Solubility

__all__ = ["Arrays", "Hospitals", "Solubility", "Table"]
