"""`msda-bench plugins`: lists installed components and their distributions."""

from __future__ import annotations

import argparse

from msda_bench.cli.lines import say_table, warn_of
from msda_bench.cli.parser import Commands


def add_parser(commands: Commands) -> None:
    """Adds the command."""
    commands.add_parser("plugins", help="list every component with its distribution").set_defaults(handler=_run)


def _run(_: argparse.Namespace) -> int:
    from msda_bench.plugins import discover

    registry = discover()
    say_table(
        ("kind", "name", "version", "distribution", "description"),
        ((one.kind, one.name, str(one.cls.version), one.origin, one.cls.description()) for one in registry.entries),
    )
    warn_of(registry.changed)
    return 2 * warn_of(registry.problems, "error")
