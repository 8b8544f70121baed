"""Everything that the author of a command imports; kept stable like `msda_bench.api`, and quick to import."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from msda_bench.cli.command import Command
from msda_bench.cli.lines import say, warn, warn_of
from msda_bench.cli.tables import (
    add_against_option,
    add_by_option,
    add_metric_option,
    add_output_options,
    add_table_options,
    load_folder,
    reference_of,
    show,
)
from msda_bench.errors import BenchError, DataError, PluginError, StoreError, SuiteError
from msda_bench.marker import hookimpl

if TYPE_CHECKING:
    from msda_bench.results.notes import is_whole
    from msda_bench.results.report import Column, Line, Report, Section, Table, Unit

__all__ = [
    "BenchError",
    "Column",
    "Command",
    "DataError",
    "Line",
    "PluginError",
    "Report",
    "Section",
    "StoreError",
    "SuiteError",
    "Table",
    "Unit",
    "add_against_option",
    "add_by_option",
    "add_metric_option",
    "add_output_options",
    "add_table_options",
    "hookimpl",
    "is_whole",
    "load_folder",
    "reference_of",
    "say",
    "show",
    "warn",
    "warn_of",
]

_HOMES = {
    "is_whole": "msda_bench.results.notes",
    **dict.fromkeys(("Column", "Line", "Report", "Section", "Table", "Unit"), "msda_bench.results.report"),
}


def __getattr__(name: str) -> Any:
    """Imports what needs pandas when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
