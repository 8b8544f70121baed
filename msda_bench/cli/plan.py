"""`msda-bench plan SUITE`: says what it takes to find a gain, from the runs of a result folder."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING

from msda_bench.cli.executor import number, probability
from msda_bench.cli.run import load_work
from msda_bench.cli.suites import add_suite_argument
from msda_bench.cli.tables import add_shared, load_folder

if TYPE_CHECKING:
    from msda_bench.results.report import Report


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds its arguments."""
    add = parser.add_argument
    add_suite_argument(parser)
    add(
        "--detect",
        metavar="GAIN",
        type=lambda text: number(text, float, lambda gain: 0 < gain < math.inf, "a number of points above 0"),
        default=1.0,
        help="the true gain over the baseline that is to be found, in points (1.0)",
    )
    add(
        "--power",
        metavar="P",
        type=probability,
        default=0.8,
        help="the probability with which it is to be found (0.8)",
    )
    what = "take standard deviations and seconds from this folder of the same or a similar suite (the suite's own)"
    add("--pilot", type=Path, metavar="DIR", help=what)
    add(
        "--out", type=Path, default=Path("results"), metavar="DIR", help="parent of the suite's result folder (results)"
    )
    add_shared(parser, "--format")
    add("--quiet", action="store_true", help="print no verdict and no explanation of the table")
    parser.set_defaults(own=None, executor="local", workers=None, scheduler=None, stack=None, timeout=None, fetch=False)


def command(args: argparse.Namespace) -> Report:
    """Reports what the suite takes."""
    from msda_bench.results.power import plan_report
    from msda_bench.running.runner import survey
    from msda_bench.store import Store

    expansion = load_work(args).expansion
    folder = args.out / expansion.plan.suite
    runs = load_folder(args, args.pilot or folder)
    missing = survey(expansion, Store.find(folder), expansion.plan.most).missing
    return plan_report(expansion, missing, runs, args.detect, args.power)
