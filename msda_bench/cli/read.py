"""The commands that read result folders: tables, comparisons, pages and published numbers."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

import msda_bench
from msda_bench.cli.lines import say, say_block, warn_of
from msda_bench.cli.tables import load_folder, reference_of, show, show_folder
from msda_bench.errors import BenchError
from msda_bench.results.across import across_of
from msda_bench.results.align import align_report
from msda_bench.results.answers import across_report, advice_of
from msda_bench.results.files import replace_file
from msda_bench.results.notes import is_whole
from msda_bench.results.report import Report
from msda_bench.results.tables import csv_text
from msda_bench.results.verify import VERIFIED, verifications, verified_frame, verify_report
from msda_bench.results.words import name_of
from msda_bench.store import Store


def leaderboard(args: argparse.Namespace) -> int:
    """Prints the tables of a folder, or the accuracy on each class."""
    if args.per_class and args.against:
        raise BenchError("--per-class is for one result folder, without --against")
    if args.per_class:
        from msda_bench.results.predictions import classes_report

        return show(args, classes_report(load_folder(args)))
    return show_folder(args, "leaderboard")


def compare(args: argparse.Namespace) -> int:
    """Compares every pair of methods of a folder, its methods across datasets, or two folders side by side."""
    if args.across and args.other is not None:
        raise BenchError("--across is for one result folder; `site` joins several")
    if args.against is not None and (args.across or args.other is not None):
        raise BenchError("--against is for one result folder, without --across")
    if args.other is not None:
        matches = _matches(args.match)
        a, b = load_folder(args), load_folder(args, args.other)
        return show(args, align_report(a, b, matches, complete=is_whole(a) and is_whole(b)))
    if args.match:
        raise BenchError("--match needs two result folders")
    return _across(args) if args.across else show_folder(args, "compare")


def _across(args: argparse.Namespace) -> int:
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


def report(args: argparse.Namespace) -> int:
    """Writes a folder as one page."""
    from msda_bench_report.page import REPORT, Findings, render_page

    reference = reference_of(args)
    findings = Findings.of(load_folder(args), reference)
    path = args.folder / REPORT
    replace_file(path, render_page(findings, Store(args.folder).commands()).encode())
    for view in findings.views:
        if said := advice_of(view):
            say_block(f"{name_of(view.experiment.name)}: {' '.join(said)}", ())
    say(str(path))
    return 0 if is_whole(findings.analysis.selected) else 1


def site(args: argparse.Namespace) -> int:
    """Writes many folders as a static site."""
    from msda_bench.plugins import discover
    from msda_bench_report.site import INDEX, write_site

    registry = discover()
    warn_of(registry.problems)
    faults = write_site(args.folders, args.out, registry)
    say(str(args.out / INDEX))
    return int(warn_of(faults))


def sources(args: argparse.Namespace) -> Report:
    """Reports the effect of each source in each method and target."""
    from msda_bench.plugins import discover
    from msda_bench.results.sources import Worth, sources_report

    return sources_report(load_folder(args), Worth(discover()))


def verify(args: argparse.Namespace) -> int:
    """Compares a folder with the published numbers that its suite names, and writes verify.csv."""
    runs = load_folder(args)
    verified = verifications(runs, args.table)
    report = verify_report(runs, verified)
    write = partial(replace_file, args.folder / VERIFIED, csv_text(verified_frame(verified)).encode())
    return show(args, report, write if args.table is None else None)  # the file is for the suite's own tables only
