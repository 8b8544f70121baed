"""`msda-bench report DIR`: writes a result folder as one page."""

from __future__ import annotations

import argparse
from pathlib import Path

from msda_bench.cli.lines import say
from msda_bench.cli.tables import add_metric_option, is_whole, report_faults


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds its arguments."""
    parser.add_argument("folder", metavar="DIR", type=Path, help="a result folder, such as results/quickstart")
    add_metric_option(parser)


def command(args: argparse.Namespace) -> int:
    """Carries it out."""
    from msda_bench.results.frame import load_results
    from msda_bench_report.page.page import write_page

    runs = load_results(args.folder, repair=True, metric=args.metric)
    report_faults(runs)
    say(str(write_page(args.folder, runs)))
    return 0 if is_whole(runs) else 1
