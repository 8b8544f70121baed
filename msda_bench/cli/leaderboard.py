"""`msda-bench leaderboard DIR`: the tables of a result folder."""

from __future__ import annotations

import argparse
from pathlib import Path

from msda_bench.cli.parser import Commands
from msda_bench.cli.tables import show_folder


def add_parser(commands: Commands) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "leaderboard", help="print the leaderboard of a result folder and rewrite its csv files"
    )
    parser.add_argument("folder", metavar="DIR", type=Path, help="a result folder, such as results/quickstart")
    parser.set_defaults(handler=_run)


def _run(args: argparse.Namespace) -> int:
    from msda_bench.report.terminal import print_leaderboard

    return show_folder(args.folder, print_leaderboard)
