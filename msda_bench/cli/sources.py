"""`msda-bench sources DIR`: what each source does to a target."""

from __future__ import annotations

import argparse
from pathlib import Path

from msda_bench.cli.parser import Commands
from msda_bench.cli.tables import add_output_options, read_folder
from msda_bench.cli.uncollected import uncollected


def add_parser(commands: Commands) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "sources", help="what each source is given as a weight, what it is worth, and how a target fares without it"
    )
    parser.add_argument("folder", metavar="DIR", type=Path, help="a result folder, such as results/stress-leave-out")
    add_output_options(parser)
    parser.set_defaults(handler=_run)


@uncollected()
def _run(args: argparse.Namespace) -> int:
    from rich.console import Console

    from msda_bench.plugins import discover
    from msda_bench.report.problems import problems_of
    from msda_bench.report.rounding import json_text
    from msda_bench.report.sources import source_tables
    from msda_bench.report.sources_json import sources_json
    from msda_bench.report.sources_text import print_sources
    from msda_bench.report.sources_worth import Worth
    from msda_bench.stats.scores import collect_scores

    plan, records, faults = read_folder(args.folder)
    worth = Worth(discover())
    tables, scores = source_tables(plan, records, worth), collect_scores(plan, records)
    if args.json:
        print(json_text(sources_json(args.folder, tables, scores, worth.notes, faults)))
    else:
        print_sources(Console(), tables, scores, worth.notes, explain=not args.quiet)
    return 1 if faults or any(problems_of(one) for one in scores) else 0
