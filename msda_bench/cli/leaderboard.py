"""`msda-bench leaderboard DIR`: the tables of a result folder."""

from __future__ import annotations

import argparse
from pathlib import Path

from msda_bench.cli.tables import (
    add_against_option,
    add_by_option,
    add_experiments_option,
    add_metric_option,
    add_output_options,
    add_table_options,
    load_folder,
    show,
    show_folder,
)
from msda_bench.errors import BenchError


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds its arguments."""
    add = parser.add_argument
    add("folder", metavar="DIR", type=Path, help="a result folder, such as results/quickstart")
    add("--per-class", action="store_true", help="print the accuracy on each class instead, mean over seeds")
    add_against_option(parser)
    add_by_option(parser)
    add_experiments_option(parser)
    add_table_options(parser)
    add_metric_option(parser)
    add_output_options(parser)


def command(args: argparse.Namespace) -> int:
    """Carries it out."""
    if args.per_class and args.against:
        raise BenchError("--per-class is for one result folder, without --against")
    if args.per_class:
        from msda_bench.results.predictions import classes_report

        return show(args, classes_report(load_folder(args)))
    return show_folder(args, "leaderboard")
