"""`msda-bench selection DIR`: reports how well each criterion selects settings."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import msda_bench
from msda_bench.cli.lines import say
from msda_bench.cli.tables import (
    Part,
    add_output_options,
    add_table_options,
    beside_output,
    check_format,
    is_whole,
    load_folder,
    print_data,
    print_lines,
    print_notes,
    print_parts,
)
from msda_bench.errors import BenchError

if TYPE_CHECKING:
    import pandas as pd

SELECTION = "selection.csv"
CANDIDATES = "candidates.csv"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds its arguments."""
    parser.add_argument("folder", metavar="DIR", type=Path, help="a result folder of a suite with select")
    add_table_options(parser, columns="mean,regret")
    add_output_options(parser)


def command(args: argparse.Namespace) -> int:
    """Carries it out."""
    from msda_bench.results.criteria import candidates, criteria, sensitivity
    from msda_bench.results.files import replace_file
    from msda_bench.results.serialize import csv_text

    check_format(args)
    runs = load_folder(args)
    found, tried = criteria(runs), candidates(runs)
    if found.empty:
        raise BenchError(f"{args.folder}: no settings were selected here; add `select` to the suite")
    files = {SELECTION: csv_text(found), CANDIDATES: csv_text(tried)}
    try:
        _print(args, runs, found, tried)
    finally:
        written: list[Path] = []
        with beside_output(args.folder):
            for name, text in files.items():
                replace_file(args.folder / name, text.encode())
            written = [args.folder / name for name in files]
            points = sensitivity(runs)
            for experiment, judged in found.groupby("experiment", sort=False):
                chart = msda_bench.plots.selection(judged, points[points["experiment"] == experiment])
                written.append(msda_bench.plots.save(chart, args.folder / f"selection-{experiment}.svg"))
    if args.format == "simple" and not (args.json or args.quiet):
        for path in written:
            say(str(path))
    return 0 if is_whole(runs) else 1


def _print(args: argparse.Namespace, runs: pd.DataFrame, found: pd.DataFrame, tried: pd.DataFrame) -> None:
    from msda_bench.results.criteria_text import criteria_json, criteria_notes, criteria_tables
    from msda_bench.results.notes import note_lines, problem_lines

    tables = [table for table in runs.attrs["plan"].experiments if (found["experiment"] == table.name).any()]
    if print_data(args, found, lambda: criteria_json(runs, found, tried, [table.name for table in tables])):
        return
    lines = note_lines(runs)
    print_parts(
        args,
        [
            Part(
                criteria_tables(table, found[found["experiment"] == table.name], args.digits),
                lines=[f"note: {line}" for line in lines.get(table.name, ())],
            )
            for table in tables
        ],
    )
    print_notes(args, criteria_notes(found))
    print_lines(args, [f"problem: {line}" for line in problem_lines(runs)])
