"""`msda-bench plugins`: what is installed, and from which distribution."""

from __future__ import annotations

import argparse

from msda_bench.cli.parser import Commands


def add_parser(commands: Commands) -> None:
    """Adds the command."""
    parser = commands.add_parser("plugins", help="list every component with its distribution")
    parser.set_defaults(handler=_run)


def _run(_: argparse.Namespace) -> int:
    from rich.console import Console
    from rich.table import Table

    from msda_bench.plugins import discover

    registry = discover()
    table = Table("kind", "name", "version", "distribution", "description", box=None, pad_edge=False)
    for entry in registry.entries:
        table.add_row(entry.kind, entry.name, str(entry.cls.version), entry.origin, entry.cls.description())
    Console().print(table)
    problems = [*map(str, registry.broken), *registry.conflicts]
    for problem in problems:
        Console(stderr=True, soft_wrap=True).print(f"msda-bench: error: {problem}", markup=False, highlight=False)
    return 2 if problems else 0
