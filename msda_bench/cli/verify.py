"""`msda-bench verify DIR`: compares a result folder with the published numbers that its suite names."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msda_bench.cli.lines import say
from msda_bench.cli.tables import (
    Part,
    add_output_options,
    add_table_options,
    beside_output,
    check_format,
    load_folder,
    print_data,
    print_parts,
)

if TYPE_CHECKING:
    import pandas as pd

    from msda_bench.results.verify import Verification

_FINE = ("agrees", "not comparable")
"""The statuses with exit code 0."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds its arguments."""
    add = parser.add_argument
    add("folder", metavar="DIR", type=Path, help="a result folder, such as results/paper-amazon")
    add(
        "--table",
        metavar="TABLE",
        help="a table of published numbers, or a .csv file with one, instead of the suite's own",
    )
    add_table_options(parser, columns="published,ours")
    add_output_options(parser)


def command(args: argparse.Namespace) -> int:
    """Carries it out."""
    from msda_bench.results.files import replace_file
    from msda_bench.results.serialize import csv_text
    from msda_bench.results.verify import VERIFIED, verifications, verified_frame

    check_format(args)
    runs = load_folder(args)
    verified = verifications(runs, args.table)
    rows = verified_frame(verified)
    text = csv_text(rows)
    try:
        _print(args, runs, verified, rows)
    finally:
        if args.table is None:  # the file is for the suite's own tables only
            with beside_output(args.folder):
                replace_file(args.folder / VERIFIED, text.encode())
    return 0 if not runs.attrs["fault_lines"] and all(verification.status in _FINE for verification in verified) else 1


def _print(args: argparse.Namespace, runs: pd.DataFrame, verified: Sequence[Verification], rows: pd.DataFrame) -> None:
    from msda_bench.results import verify_text

    if print_data(args, rows, lambda: verify_text.verify_json(runs, verified)):
        return
    parts = [
        Part(
            verify_text.verify_tables(verification, args.digits),
            verify_text.verify_notes(verification),
            verify_text.verify_problems(verification),
        )
        for verification in verified
    ]
    print_parts(args, parts)
    if args.format == "simple":
        say("")
        for name in verify_text.unverified(runs, verified):
            say(f"note: {name} names no published table and is not verified")
        for verification in verified:
            say(f"verdict: {verify_text.verdict(verification)}")
