"""`msda-bench plugins`: lists installed components and executors, and their distributions."""

from __future__ import annotations

import argparse

from msda_bench.cli.lines import say_table, warn_of


def command(_: argparse.Namespace) -> int:
    """See the registry."""
    from msda_bench.plugins import discover
    from msda_bench.running.execute import executors

    registries = discover(), executors()
    entries = [entry for registry in registries for entry in registry.entries]
    say_table(
        ("kind", "name", "version", "distribution", "description"),
        ((one.kind, one.name, str(one.cls.version), one.origin, one.cls.description()) for one in entries),
    )
    warn_of([line for registry in registries for line in registry.changed])
    return 2 * warn_of([line for registry in registries for line in registry.problems], "error")
