"""`msda-bench weights DIR`: figures of how much each source counts."""

from __future__ import annotations

import argparse
from pathlib import Path

from msda_bench.cli.parser import Commands
from msda_bench.cli.tables import read_folder
from msda_bench.cli.uncollected import uncollected


def add_parser(commands: Commands) -> None:
    """Adds the command."""
    parser = commands.add_parser("weights", help="draw how much each source counts, one figure for each method")
    parser.add_argument("folder", metavar="DIR", type=Path, help="a result folder, such as results/quickstart")
    parser.set_defaults(handler=_run)


@uncollected()
def _run(args: argparse.Namespace) -> int:
    from rich.console import Console

    from msda_bench.report.experiments import print_all_remarks
    from msda_bench.report.screen import Screen
    from msda_bench.report.weights_figure import write_weights_figures
    from msda_bench.stats.scores import collect_scores

    plan, records, faults = read_folder(args.folder)
    written = write_weights_figures(args.folder, plan, records)
    for path in written:
        print(path)
    if not written:
        print("no method here weighs single sources, or none has been run yet")
    problems = print_all_remarks(Screen.of(Console()), collect_scores(plan, records))
    return 1 if faults or problems else 0
