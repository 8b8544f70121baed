"""`msda-bench report DIR`: writes a result folder as one page."""

from __future__ import annotations

import argparse
from pathlib import Path

from msda_bench.cli.lines import say
from msda_bench.cli.parser import Commands
from msda_bench.cli.tables import add_metric_option, is_whole, report_faults


def add_parser(commands: Commands) -> None:
    """Adds the command."""
    parser = commands.add_parser("report", help="write a result folder as one page, report.html, that needs no network")
    parser.add_argument("folder", metavar="DIR", type=Path, help="a result folder, such as results/quickstart")
    add_metric_option(parser)
    parser.set_defaults(handler=_run)


def _run(args: argparse.Namespace) -> int:
    from msda_bench.results.frame import load_results
    from msda_bench_report.page.page import write_page

    runs = load_results(args.folder, repair=True, metric=args.metric)
    report_faults(runs)
    say(str(write_page(args.folder, runs)))
    return 0 if is_whole(runs) else 1
