"""`msda-bench weights DIR`: draws the weight of each source."""

from __future__ import annotations

import argparse
from pathlib import Path

from msda_bench.cli.lines import say
from msda_bench.cli.tables import is_whole, load_folder


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds its arguments."""
    parser.add_argument("folder", metavar="DIR", type=Path, help="a result folder, such as results/quickstart")


def command(args: argparse.Namespace) -> int:
    """Carries it out."""
    from msda_bench.results.frame import load_curves
    from msda_bench.results.notes import note_lines, problem_lines
    from msda_bench_report.plots.still import write_weights

    runs = load_folder(args)
    written = write_weights(args.folder, load_curves(runs))
    for path in written:
        say(str(path))
    if not written:
        say("no method here weighs single sources, or none has run yet")
    for lines in note_lines(runs).values():
        for line in lines:
            say(f"note: {line}")
    for line in problem_lines(runs):
        say(f"problem: {line}")
    return 0 if is_whole(runs) else 1
