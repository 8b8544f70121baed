"""`msda-bench leaderboard DIR`: the tables of a result folder."""

from __future__ import annotations

import argparse
from pathlib import Path

from msda_bench.cli.tables import add_shared, load_folder, show, show_folder
from msda_bench.errors import BenchError


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds its arguments."""
    add = parser.add_argument
    add("folder", metavar="DIR", type=Path, help="a result folder, such as results/quickstart")
    add("--per-class", action="store_true", help="print the accuracy on each class instead, mean over seeds")
    add_shared(parser, "--against", "--by", "--experiments", "--format", "--methods", "--metric", "--quiet")


def command(args: argparse.Namespace) -> int:
    """Carries it out."""
    if args.per_class and args.against:
        raise BenchError("--per-class is for one result folder, without --against")
    if args.per_class:
        from msda_bench.results.predictions import classes_report

        return show(args, classes_report(load_folder(args)))
    return show_folder(args, "leaderboard")
