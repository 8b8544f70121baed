"""`msda-bench plugins`: what is installed, and from which distribution."""

from __future__ import annotations

import argparse

from msda_bench.cli.lines import say_table
from msda_bench.cli.parser import Commands
from msda_bench.cli.problems import tell_problems, warn_of


def add_parser(commands: Commands) -> None:
    """Adds the command."""
    parser = commands.add_parser("plugins", help="list every component with its distribution")
    parser.set_defaults(handler=_run)


def _run(_: argparse.Namespace) -> int:
    from msda_bench.plugins import discover

    registry = discover()
    say_table(
        ("kind", "name", "version", "distribution", "description"),
        (
            (entry.kind, entry.name, str(entry.cls.version), entry.origin, entry.cls.description())
            for entry in registry.entries
        ),
    )
    warn_of(registry.changed)
    return tell_problems(registry)
