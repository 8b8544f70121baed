"""`msda-bench leaderboard DIR`: the tables of a result folder, or of several as one."""

from __future__ import annotations

import argparse
from pathlib import Path

from msda_bench.cli.parser import Commands
from msda_bench.cli.tables import add_output_options, show_folder, tell_faults
from msda_bench.cli.uncollected import uncollected
from msda_bench.errors import BenchError

_TWO = 2


def add_parser(commands: Commands) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "leaderboard", help="print the leaderboard of a result folder and rewrite its files, or that of several as one"
    )
    add = parser.add_argument
    add("folder", metavar="DIR", type=Path, nargs="?", help="a result folder, such as results/quickstart")
    add("--merge", metavar="DIR", type=Path, nargs="+", help="several result folders, as one; nothing in them changes")
    add("--out", metavar="DIR", type=Path, help="with --merge: a folder that gets the csv files")
    add_output_options(parser)
    parser.set_defaults(handler=_run)


@uncollected()
def _run(args: argparse.Namespace) -> int:
    from msda_bench.report.terminal import print_leaderboard

    if (args.folder is None) == (args.merge is None):
        raise BenchError("leaderboard: name one result folder, or several after --merge")
    if args.merge is not None:
        return _merge(args)
    if args.out is not None:
        raise BenchError("--out is for --merge; the files of one result folder are in it")
    return show_folder(args, "leaderboard", print_leaderboard)


def _merge(args: argparse.Namespace) -> int:
    from rich.console import Console

    from msda_bench.report.folder import read
    from msda_bench.report.problems import find_problems
    from msda_bench.report.rounding import json_text
    from msda_bench.report.tables_json import tables_json
    from msda_bench.report.terminal import print_leaderboard
    from msda_bench.report.union import unite
    from msda_bench.report.write import write_tables
    from msda_bench.stats.analysis import analyse
    from msda_bench.store.files import make_folder, named

    if len(args.merge) < _TWO:
        raise BenchError("--merge needs two or more result folders")
    _check_out(args.out)
    folders = [read(path, repair=False) for path in args.merge]
    for folder in folders:
        tell_faults(folder)
    faults = [line for folder in folders for line in folder.lines]
    union = unite(folders)
    analyses = analyse(union.plan, union.records)
    try:
        if args.json:
            tables = tables_json("leaderboard", args.merge, union.plan, analyses, [*faults, *union.conflicts])
            print(json_text(tables))
        else:
            print_leaderboard(Console(), analyses, explain=not args.quiet)
    finally:
        if args.out is not None:
            with named(args.out, "cannot be made"):
                make_folder(args.out)
            write_tables(args.out, union.plan, analyses)
    return 1 if faults or union.conflicts or find_problems(union.plan, union.records) else 0


def _check_out(out: Path | None) -> None:
    from msda_bench.store.store import PLAN

    if out is not None and (out / PLAN).exists():
        raise BenchError(f"--out {out}: is a result folder, whose own tables would be lost; name another folder")
