"""`msda-bench core DIR`: finds the fewest tasks and seeds that keep the order of the methods of a result folder."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from msda_bench.cli.executor import probability
from msda_bench.cli.tables import add_output_options, load_folder, names

if TYPE_CHECKING:
    from msda_bench.results.report import Report


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds its arguments."""
    add = parser.add_argument
    add("folder", metavar="DIR", type=Path, help="a result folder, such as results/registered")
    what = "the methods whose order is to be kept (the suite's primary ones, or all)"
    add("--methods", metavar="A,B", type=names, default=[], dest="family", help=what)
    what = "the share of the clearly separated pairs that is to stay in order (0.9)"
    add("--agree", metavar="P", type=probability, default=0.9, help=what)
    add_output_options(parser)


def command(args: argparse.Namespace) -> Report:
    """Reports the core, its cost, and how faithful it is."""
    from msda_bench.results.core import core_report

    return core_report(load_folder(args), args.family, args.agree)
