"""`msda-bench report DIR`: a result folder as one page."""

from __future__ import annotations

import argparse
from pathlib import Path

from msda_bench.cli.parser import Commands
from msda_bench.cli.tables import tell_faults
from msda_bench.cli.uncollected import uncollected


def add_parser(commands: Commands) -> None:
    """Adds the command."""
    parser = commands.add_parser("report", help="write a result folder as one page, report.html, that needs no network")
    parser.add_argument("folder", metavar="DIR", type=Path, help="a result folder, such as results/quickstart")
    parser.set_defaults(handler=_run)


@uncollected()
def _run(args: argparse.Namespace) -> int:
    from msda_bench.report.folder import read
    from msda_bench.report.html.page import write_page
    from msda_bench.report.problems import find_problems
    from msda_bench.stats.criteria import judge_criteria

    folder = read(args.folder)
    tell_faults(folder)
    criteria = judge_criteria(folder.plan, folder.records)
    print(write_page(args.folder, folder.told_plan, folder.records, folder.lines, criteria))
    return 1 if folder.lines or find_problems(folder.plan, folder.records) else 0
