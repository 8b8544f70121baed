"""`msda-bench plugins`: what is installed, and from which distribution."""

from __future__ import annotations

import argparse
import sys

from msda_bench.cli.parser import Commands
from msda_bench.cli.problems import tell_problems


def add_parser(commands: Commands) -> None:
    """Adds the command."""
    parser = commands.add_parser("plugins", help="list every component with its distribution")
    parser.set_defaults(handler=_run)


_PLAIN_WIDTH = 10_000
"""Where a program reads the output: wide enough that a row is a line."""


def _run(_: argparse.Namespace) -> int:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from msda_bench.plugins import discover

    registry = discover()
    table = Table("kind", "name", "version", "distribution", "description", box=None, pad_edge=False)
    for entry in registry.entries:
        cells = (entry.kind, entry.name, str(entry.cls.version), entry.origin, entry.cls.description())
        table.add_row(*map(Text, cells))  # as text, since a stranger's description may look like markup
    Console(width=None if sys.stdout.isatty() else _PLAIN_WIDTH).print(table)
    return tell_problems(registry)
