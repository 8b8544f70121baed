"""`msda-bench compare A [B]`: every pair of methods of a result folder, or two result folders side by side."""

from __future__ import annotations

import argparse
from pathlib import Path

import msda_bench
from msda_bench.cli.tables import add_shared, load_folder, show, show_folder
from msda_bench.errors import BenchError


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds its arguments."""
    add = parser.add_argument
    add("folder", metavar="A", type=Path, help="a result folder; without B its csv files are rewritten, too")
    add("other", metavar="B", type=Path, nargs="?", help="another result folder, compared with the first run by run")
    add(
        "--match",
        metavar="X=Y",
        action="append",
        default=[],
        help="compare method X of A with method Y of B instead of its namesake, or only experiment X with experiment Y",
    )
    add(
        "--across",
        action="store_true",
        help="compare the methods of A only across its datasets, and draw their ranks as critical-difference.svg in A",
    )
    add_shared(parser, "--against", "--by", "--experiments", "--format", "--methods", "--metric", "--quiet")


def command(args: argparse.Namespace) -> int:
    """Carries it out."""
    if args.across and args.other is not None:
        raise BenchError("--across is for one result folder; `site` joins several")
    if args.against is not None and (args.across or args.other is not None):
        raise BenchError("--against is for one result folder, without --across")
    if args.other is not None:
        return _compare(args)
    if args.match:
        raise BenchError("--match needs two result folders")
    return _across(args) if args.across else show_folder(args, "compare")


def _across(args: argparse.Namespace) -> int:
    from msda_bench.results.across import across_of
    from msda_bench.results.answers import across_report
    from msda_bench.results.notes import is_whole

    runs = load_folder(args)
    across = across_of(runs)
    if across is None:
        what = "experiments of two datasets or more, by accuracy, with any headroom asked for"
        gone = "" if is_whole(runs) else "; runs are missing or failed here, which `leaderboard` names"
        raise BenchError(f"{args.folder}: --across needs {what}{gone}")
    draws = across.concludes and across.mean_ranks and not (args.metric or args.experiments or args.by)
    report = across_report(runs, across, args.by)

    def draw() -> Path:
        chart = msda_bench.plots.critical_difference(across)
        return msda_bench.plots.save(chart, args.folder / "critical-difference.svg")

    return show(args, report, draw if draws else None)


def _compare(args: argparse.Namespace) -> int:
    from msda_bench.results.align import align_report
    from msda_bench.results.notes import is_whole

    matches = _matches(args.match)
    a, b = load_folder(args), load_folder(args, args.other)
    return show(args, align_report(a, b, matches, complete=is_whole(a) and is_whole(b)))


def _matches(given: list[str]) -> dict[str, str]:
    matches: dict[str, str] = {}
    for text in given:
        name, equals, other = (part.strip() for part in text.partition("="))
        if not (name and equals and other):
            raise BenchError(f"--match {text!r}: must be X=Y, a method or experiment of A and one of B")
        if name in matches:
            raise BenchError(f"--match {text!r}: {name} is already matched with {matches[name]}")
        matches[name] = other
    return matches
