"""Code shared by the commands that show a result folder."""

from __future__ import annotations

import argparse
import errno
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pandas as pd

from msda_bench.cli.lines import out, out_width, say, say_text, say_whole, warn
from msda_bench.errors import BenchError, StoreError
from msda_bench.results.answers import folder_report
from msda_bench.results.files import write_results
from msda_bench.results.frame import load_results
from msda_bench.results.leaderboard import analyse
from msda_bench.results.ranking import against_report
from msda_bench.results.reference import Reference, read_reference
from msda_bench.results.report import Line, Report
from msda_bench.results.runs import results_of, with_results
from msda_bench.results.select import select
from msda_bench.results.tables import TABLE_WIDTH, WIDTH, check_methods, csv_text, heading, paragraph, render
from msda_bench.suite.issues import hint, shown

_READ_ONLY = {errno.EACCES, errno.EPERM, errno.EROFS}


def reference_of(args: argparse.Namespace) -> Reference | None:
    """The reference of `--against`, or None."""
    if args.against is not None and (args.metric or args.by):
        raise BenchError("--metric and --by are not for --against: a reference has the suite's metric and choice")
    return None if args.against is None else read_reference(args.against)


def load_folder(args: argparse.Namespace, folder: Path | None = None) -> pd.DataFrame:
    """Loads what the options ask of a folder, by default `args.folder`; tells of bad records on stderr."""
    runs = load_results(folder or args.folder, metric=getattr(args, "metric", ()))
    for line in results_of(runs).fault_lines:
        warn(line)
    plan = results_of(runs).plan
    if names := getattr(args, "experiments", ()):  # the others are as if they had not been planned
        known = [experiment.name for experiment in plan.experiments]
        if absent := [name for name in names if name not in known]:
            raise BenchError(*(f"--experiments: there is no {shown(name)}{hint(name, known)}" for name in absent))
        plan = replace(plan, experiments=tuple(one for one in plan.experiments if one.name in names))
        runs = with_results(runs[runs["experiment"].isin(names)], replace(results_of(runs), plan=plan))
    if (by := getattr(args, "by", None)) is None:
        return runs
    criteria = list(dict.fromkeys(name for table in plan.experiments for name in table.criteria))
    if by not in criteria:
        why = hint(by, criteria) if criteria else ": the suite selects no settings"
        raise BenchError(f"--by {shown(by)}: is no criterion of this folder{why}")
    return select(runs, by)


def show_folder(args: argparse.Namespace, command: str) -> int:
    """Prints the tables of `args.folder` and rewrites its files.

    With `--metric`, `--experiments`, `--by` or `--against` the files do not change, since they show the whole suite by
    its own metric and criterion. Returns the exit code.
    """
    reference, runs = reference_of(args), load_folder(args)
    if reference is not None:
        return show(args, against_report(command, runs, reference))
    analysis = analyse(runs)
    report = folder_report(command, analysis, results_of(runs).fault_lines)
    is_part = bool(args.metric or args.experiments or args.by)
    return show(args, report, None if is_part else partial(write_results, args.folder, analysis))


def show(args: argparse.Namespace, report: Report, write: Callable[[], Path | None] | None = None) -> int:
    """Prints a report as the options request, of which a command may have few; returns the exit code.

    `write` writes the command's files, even if the reader closes the output; it returns one to name to the user.
    """
    form, quiet = getattr(args, "format", "simple"), getattr(args, "quiet", False)
    if form == "csv" and report.data is not None and getattr(args, "methods", ()):
        raise BenchError("--methods is for tables; csv has every method, so leave it out")
    path = None
    try:
        if form == "csv" and report.data is not None:
            say_whole(csv_text(report.data))
        else:
            _print(args, report, form, quiet=quiet)
    finally:
        try:
            path = None if write is None else write()
        except StoreError as error:
            if not (isinstance(error.__cause__, OSError) and error.__cause__.errno in _READ_ONLY):
                raise
            warn(f"warning: {args.folder} is read-only, so its files stay as they are: {error}")
    if path is not None and form == "simple" and not quiet:
        say(str(path))
    return 0 if report.complete else 1


def _print(args: argparse.Namespace, report: Report, form: str, *, quiet: bool) -> None:
    """Prints the tables, without those in which `--methods` leaves nothing, and their sentences."""
    methods = getattr(args, "methods", ())
    check_methods(report.tables, methods)
    shown = []
    for section in report.sections:
        tables = [table.cut(methods) for table in section.tables]
        if methods:
            tables = [table for table in tables if table.names and len(table.rows)]
        shown.append((section, tables))
    several, said = sum(len(tables) for _, tables in shown) > 1, set[str]()
    width, unicode = _screen()
    for section, tables in shown:
        for table in tables:
            text = render(table, form, width, unicode=unicode)
            if form == "simple":
                verdict = "" if quiet else paragraph(" ".join(table.verdict), min(WIDTH, width), "")
                title = paragraph(table.title, min(WIDTH, width))
                _say("\n" + "\n\n".join(filter(None, (title, verdict, text))) + "\n", unicode=unicode)
            else:
                say_text(f"{heading(table, form)}{text}\n" if several else text)
            _print_lines((Line("caption", note) for note in table.notes if note not in said), form, quiet=quiet)
            said |= {*table.notes}
        if tables or not section.tables:
            _print_lines(section.lines, form, quiet=quiet)


def _print_lines(lines: Iterable[Line], form: str, *, quiet: bool) -> None:
    """Prints sentences with plain tables, without captions if `quiet`; tells of missing tables in any format."""
    width, unicode = _screen()
    for line in lines:
        if (form == "simple" and not (quiet and line.kind == "caption")) or line.kind == "nothing":
            text = paragraph(str(line), min(WIDTH, width)) if line.wrapped else str(line)
            _say(text, unicode=unicode)


def _screen() -> tuple[int, bool]:
    """The line width, and whether the output can show more than ASCII."""
    if not out().isatty():
        return TABLE_WIDTH, False
    return out_width(), (out().encoding or "").lower().startswith("utf")


def _say(text: str, *, unicode: bool) -> None:
    say_text(text.replace("+-", "±") if unicode else text.encode("ascii", "backslashreplace").decode())
