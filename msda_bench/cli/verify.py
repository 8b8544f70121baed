"""`msda-bench verify DIR`: compares a result folder with the published numbers that its suite names."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

from msda_bench.cli.tables import add_shared, load_folder, show


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds its arguments."""
    add = parser.add_argument
    add("folder", metavar="DIR", type=Path, help="a result folder, such as results/paper-amazon")
    add(
        "--table",
        metavar="TABLE",
        help="a table of published numbers, or a .csv file with one, instead of the suite's own",
    )
    add_shared(parser, "--format", "--methods", "--quiet")


def command(args: argparse.Namespace) -> int:
    """Compares the folder with published numbers and writes verify.csv."""
    from msda_bench.results.files import replace_file
    from msda_bench.results.tables import csv_text
    from msda_bench.results.verify import VERIFIED, verifications, verified_frame
    from msda_bench.results.verify_text import verify_report

    runs = load_folder(args)
    verified = verifications(runs, args.table)
    report = verify_report(runs, verified)
    write = partial(replace_file, args.folder / VERIFIED, csv_text(verified_frame(verified)).encode())
    return show(args, report, write if args.table is None else None)  # the file is for the suite's own tables only
