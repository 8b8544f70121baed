"""`msda-bench compare DIR`: every pair of methods of a result folder."""

from __future__ import annotations

import argparse
from pathlib import Path

from msda_bench.cli.parser import Commands


def add_parser(commands: Commands) -> None:
    """Adds the command."""
    parser = commands.add_parser("compare", help="print all comparisons of a result folder and rewrite its csv files")
    parser.add_argument("folder", metavar="DIR", type=Path, help="a result folder, such as results/quickstart")
    parser.set_defaults(handler=_run)


def _run(args: argparse.Namespace) -> int:
    from rich.console import Console

    from msda_bench.report.pairs import print_comparisons
    from msda_bench.report.problems import find_problems
    from msda_bench.report.write import write_tables
    from msda_bench.store import Store

    store = Store(args.folder)
    plan = store.read_plan()
    records = store.records(cell.key for cell in plan.cells)
    print_comparisons(Console(), plan, records)
    write_tables(args.folder, plan, records)
    return 1 if find_problems(plan, records) else 0
