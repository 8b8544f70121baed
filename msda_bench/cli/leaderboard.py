"""`msda-bench leaderboard DIR`: the tables of a result folder, or of several merged."""

from __future__ import annotations

import argparse
from pathlib import Path

from msda_bench.cli.tables import (
    add_against_option,
    add_by_option,
    add_experiments_option,
    add_metric_option,
    add_output_options,
    add_table_options,
    load_folder,
    only_experiments,
    report_faults,
    show,
    show_folder,
)
from msda_bench.errors import BenchError


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds its arguments."""
    add = parser.add_argument
    add("folder", metavar="DIR", type=Path, nargs="?", help="a result folder, such as results/quickstart")
    add("--merge", metavar="DIR", type=Path, nargs="+", help="show several result folders as one; they do not change")
    add("--out", metavar="DIR", type=Path, help="with --merge: a folder for the csv files")
    add("--per-class", action="store_true", help="print the accuracy on each class instead, mean over seeds")
    add_against_option(parser)
    add_by_option(parser)
    add_experiments_option(parser)
    add_table_options(parser)
    add_metric_option(parser)
    add_output_options(parser)


def command(args: argparse.Namespace) -> int:
    """Carries it out."""
    if (args.folder is None) == (args.merge is None):
        raise BenchError("leaderboard: name one result folder, or several after --merge")
    if args.per_class and (args.merge or args.out or args.against):
        raise BenchError("--per-class is for one result folder, without --merge, --out and --against")
    if args.merge is not None and args.by is not None:
        raise BenchError("--by is for one result folder, without --merge")
    if args.merge is not None and args.against is not None:
        raise BenchError("--against is for one result folder, without --merge")
    if args.merge is not None:
        return _merge(args)
    if args.per_class:
        from msda_bench.results.predictions import classes_report

        return show(args, classes_report(load_folder(args)))
    if args.out is not None:
        raise BenchError("--out is for --merge; the files of one result folder are in it")
    return show_folder(args, "leaderboard")


def _merge(args: argparse.Namespace) -> int:
    from msda_bench.atomic import make_folder, named
    from msda_bench.results.answers import folder_report
    from msda_bench.results.files import LATEX, refuse_result_folders, write_results
    from msda_bench.results.frame import load_results
    from msda_bench.results.join import join
    from msda_bench.results.leaderboard import analyse

    if args.out is not None:
        refuse_result_folders(args.out, LATEX)
    frames = [load_results(path, metric=args.metric) for path in args.merge]
    for frame in frames:
        report_faults(frame)
    faults = [line for frame in frames for line in frame.attrs["fault_lines"]]
    merged = only_experiments(join(frames), args.experiments)
    analysis = analyse(merged)
    report = folder_report("leaderboard", analysis, [*faults, *merged.attrs["conflicts"]])
    try:
        return show(args, report)
    finally:
        if args.out is not None:
            with named(args.out, "cannot be made"):
                make_folder(args.out)
            write_results(args.out, analysis)
