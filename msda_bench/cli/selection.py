"""`msda-bench selection DIR`: how well each criterion selects settings."""

from __future__ import annotations

import argparse
from pathlib import Path

from msda_bench.cli.parser import Commands
from msda_bench.cli.tables import add_output_options, tell_faults
from msda_bench.cli.uncollected import uncollected


def add_parser(commands: Commands) -> None:
    """Adds the command."""
    parser = commands.add_parser("selection", help="show how well each criterion selects settings, and draw it")
    parser.add_argument("folder", metavar="DIR", type=Path, help="a result folder of a suite with select")
    add_output_options(parser, "leave out how the tables are read")
    parser.set_defaults(handler=_run)


@uncollected()
def _run(args: argparse.Namespace) -> int:
    from rich.console import Console

    from msda_bench.errors import BenchError
    from msda_bench.report.folder import read
    from msda_bench.report.problems import find_problems
    from msda_bench.report.rounding import json_text
    from msda_bench.report.screen import Screen
    from msda_bench.report.selection import selection_json, write_selection
    from msda_bench.report.selection_figure import write_selection_figures
    from msda_bench.report.selection_text import print_selection
    from msda_bench.stats.criteria import judge_criteria

    folder = read(args.folder)
    tell_faults(folder)
    found = judge_criteria(folder.plan, folder.records)
    if not found:
        raise BenchError(f"{args.folder}: nothing was selected here; a suite says select for that")
    try:
        if args.json:
            print(json_text(selection_json(args.folder, folder.plan.suite, found, folder.lines)))
        else:
            print_selection(Screen.of(Console()), found, explain=not args.quiet)
    finally:
        written = write_selection(args.folder, folder.plan.suite, found)
        written += write_selection_figures(args.folder, found)
    if not (args.json or args.quiet):
        for path in written:
            print(path)
    return 1 if folder.lines or find_problems(folder.plan, folder.records) else 0
