"""`msda-bench selection DIR`: reports how well each criterion selects settings."""

from __future__ import annotations

import argparse
from pathlib import Path

import msda_bench
from msda_bench.cli.tables import add_output_options, add_table_options, load_folder, show
from msda_bench.errors import BenchError

SELECTION = "selection.csv"
CANDIDATES = "candidates.csv"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds its arguments."""
    parser.add_argument("folder", metavar="DIR", type=Path, help="a result folder of a suite with select")
    add_table_options(parser)
    add_output_options(parser)


def command(args: argparse.Namespace) -> int:
    """Reports how well each criterion selects settings; writes and draws it."""
    from msda_bench.results.criteria import candidates, criteria, sensitivity
    from msda_bench.results.criteria_text import criteria_report
    from msda_bench.results.files import replace_file
    from msda_bench.results.serialize import csv_text

    runs = load_folder(args)
    rows, tried = criteria(runs), candidates(runs)
    if rows.empty:
        raise BenchError(f"{args.folder}: no settings were selected here; add `select` to the suite")

    def write() -> list[Path]:
        texts = {args.folder / SELECTION: csv_text(rows), args.folder / CANDIDATES: csv_text(tried)}
        for path, text in texts.items():
            replace_file(path, text.encode())
        points, drawn = sensitivity(runs), []
        for experiment, judged in rows.groupby("experiment", sort=False):
            try:
                chart = msda_bench.plots.selection(judged, points[points["experiment"] == experiment])
            except ValueError:  # no criterion has a regret, since candidates are missing
                continue
            drawn.append(msda_bench.plots.save(chart, args.folder / f"selection-{experiment}.svg"))
        return [*texts, *drawn]

    return show(args, criteria_report(runs, rows), write)
