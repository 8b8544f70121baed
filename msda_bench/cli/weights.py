"""`msda-bench weights DIR`: figures of how much each source counts."""

from __future__ import annotations

import argparse
from pathlib import Path

from msda_bench.cli.parser import Commands


def add_parser(commands: Commands) -> None:
    """Adds the command."""
    parser = commands.add_parser("weights", help="draw how much each source counts, one figure for each method")
    parser.add_argument("folder", metavar="DIR", type=Path, help="a result folder, such as results/quickstart")
    parser.set_defaults(handler=_run)


def _run(args: argparse.Namespace) -> int:
    from msda_bench.report.weights_figure import write_weights_figures
    from msda_bench.store import Store

    store = Store(args.folder)
    plan = store.read_plan()
    written = write_weights_figures(args.folder, plan, store.records(cell.key for cell in plan.cells))
    for path in written:
        print(path)
    if not written:
        print("no method here weighs single sources, or none has been run yet")
    return 0
