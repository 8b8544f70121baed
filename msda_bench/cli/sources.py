"""`msda-bench sources DIR`: reports the effect of each source on a target."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from msda_bench.cli.lines import say
from msda_bench.cli.tables import (
    Part,
    add_experiments_option,
    add_output_options,
    add_table_options,
    check_format,
    is_whole,
    load_folder,
    print_data,
    print_lines,
    print_notes,
    print_parts,
)

if TYPE_CHECKING:
    import pandas as pd


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds its arguments."""
    parser.add_argument("folder", metavar="DIR", type=Path, help="a result folder, such as results/stress-leave-out")
    parser.add_argument(
        "--summary", action="store_true", help="print only how the weights correlate with what the sources are worth"
    )
    add_experiments_option(parser)
    add_table_options(parser, columns="weight,worth")
    add_output_options(parser)


def command(args: argparse.Namespace) -> int:
    """Carries it out."""
    from msda_bench.plugins import discover
    from msda_bench.results.sources import Worth, sources, sources_json

    check_format(args)
    runs, worth = load_folder(args), Worth(discover())
    found = sources(runs, worth)
    if not print_data(args, found, lambda: sources_json(runs, found, worth.notes)):
        _print(args, runs, found, worth.notes)
    return 0 if is_whole(runs) else 1


def _print(args: argparse.Namespace, runs: pd.DataFrame, found: pd.DataFrame, notes: tuple[str, ...]) -> None:
    from msda_bench.results.notes import note_lines, problem_lines
    from msda_bench.results.sources import LEGEND, sources_summary, sources_tables

    tables = list(sources_summary(found) if args.summary else sources_tables(found, args.digits))
    print_parts(args, [Part(tables)])
    if found.empty:
        say("no method here weighs single sources, no run leaves one out, or none has run yet")
    elif not tables:
        say("no target has three sources with a weight and a worth, from the dataset or from a run without each")
    print_notes(args, [LEGEND] if tables and not args.summary else [])
    lines = [*notes, *(line for lines in note_lines(runs).values() for line in lines)]
    print_lines(args, [f"note: {line}" for line in dict.fromkeys(lines)])
    print_lines(args, [f"problem: {line}" for line in problem_lines(runs)])
