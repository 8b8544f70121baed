"""`msda-bench schema`: prints the JSON schema of a suite, by which editors complete and check suites."""

from __future__ import annotations

import argparse
import json

from msda_bench.cli.parser import Commands


def add_parser(commands: Commands) -> None:
    """Adds the command."""
    parser = commands.add_parser("schema", help="print the JSON schema of a suite, installed components included")
    parser.set_defaults(handler=_run)


def _run(_: argparse.Namespace) -> int:
    from msda_bench.plugins import discover
    from msda_bench.suite.json_schema import suite_schema

    print(json.dumps(suite_schema(discover()), indent=2))
    return 0
