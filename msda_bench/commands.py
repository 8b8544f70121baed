"""Everything that the author of a command imports; kept stable like `msda_bench.api`, and quick to import."""

from msda_bench.cli.command import Command
from msda_bench.cli.lines import say, warn, warn_of
from msda_bench.cli.tables import add_metric_option, beside_output, is_whole, load_folder, report_faults
from msda_bench.errors import BenchError, DataError, PluginError, StoreError, SuiteError
from msda_bench.marker import hookimpl

__all__ = [
    "BenchError",
    "Command",
    "DataError",
    "PluginError",
    "StoreError",
    "SuiteError",
    "add_metric_option",
    "beside_output",
    "hookimpl",
    "is_whole",
    "load_folder",
    "report_faults",
    "say",
    "warn",
    "warn_of",
]
