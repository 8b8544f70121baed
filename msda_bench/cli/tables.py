"""Code shared by the commands that show a result folder."""

from __future__ import annotations

import argparse
import errno
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from msda_bench.cli.lines import say, say_text, warn
from msda_bench.errors import BenchError, StoreError

if TYPE_CHECKING:
    import pandas as pd

    from msda_bench.results.reference import Reference
    from msda_bench.results.report import Line, Report, Table

_READ_ONLY = {errno.EACCES, errno.EPERM, errno.EROFS}


def _names(text: str) -> list[str]:
    """Parses names that commas separate."""
    return [name for part in text.split(",") if (name := part.strip())]


_SHARED: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "--against": {
            "metavar": "REFERENCE",
            "help": "rank these methods among recorded ones of the same protocol: `reference`, those that come with "
            "msda-bench, or a result folder or file of `store reference`",
        },
        "--by": {
            "metavar": "NAME",
            "help": "use the settings that this criterion selects, such as oracle, instead of the suite's; files do "
            "not change",
        },
        "--experiments": {
            "metavar": "A,B",
            "type": _names,
            "default": (),
            "help": "only these experiments of the folder; its files do not change",
        },
        "--format": {
            "choices": ("simple", "csv", "github", "latex"),
            "default": "simple",
            "help": "how tables are printed; csv has every row and column",
        },
        "--methods": {"metavar": "A,B", "type": _names, "default": (), "help": "only these methods"},
        "--metric": {
            "metavar": "NAME",
            "type": _names,
            "default": (),
            "help": "show this metric, such as macro_f1, instead of the suite's; of several, each table shows one for "
            "its task",
        },
        "--quiet": {"action": "store_true", "help": "print no verdict and no explanation of the tables"},
    }
)
"""The options that several commands have."""


def add_shared(parser: argparse.ArgumentParser, *options: str) -> None:
    """Adds options that other commands have, too, in this order."""
    for name in options:
        parser.add_argument(name, **_SHARED[name])


def reference_of(args: argparse.Namespace) -> Reference | None:
    """The reference of `--against`, or None.

    Raises:
        BenchError: there is none of that name, it cannot be used, or `--metric` or `--by` asks for something else.
    """
    from msda_bench.results.reference import read_reference

    if args.against is not None and (args.metric or args.by):
        raise BenchError("--metric and --by are not for --against: a reference has the suite's metric and choice")
    return None if args.against is None else read_reference(args.against)


def load_folder(args: argparse.Namespace, folder: Path | None = None) -> pd.DataFrame:
    """Loads the runs of a folder, by default `args.folder`; reports damaged and conflicting records on stderr.

    Raises:
        BenchError: the folder cannot be read, an experiment of `--experiments` is missing from it, or `--by` names no
            criterion whose choices were trained.
    """
    from msda_bench.results.frame import load_results

    runs = load_results(folder or args.folder, metric=getattr(args, "metric", ()))
    for line in runs.attrs["fault_lines"]:
        warn(line)
    return _selected(_only_experiments(runs, getattr(args, "experiments", ())), getattr(args, "by", None))


def _selected(runs: pd.DataFrame, by: str | None) -> pd.DataFrame:
    """The runs with the settings that a criterion selects instead of the suite's own; all runs if none is named."""
    from msda_bench.results.select import select
    from msda_bench.suite.mistakes import hint, shown

    if by is None:
        return runs
    known = list(dict.fromkeys(name for table in runs.attrs["plan"].experiments for name in table.criteria))
    if by not in known:
        why = hint(by, known) if known else ": the suite selects no settings"
        raise BenchError(f"--by {shown(by)}: is no criterion of this folder{why}")
    return select(runs, by)


def _only_experiments(runs: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Keeps the runs of these experiments, as if no others had been planned; all runs if none are named."""
    from msda_bench.suite.mistakes import hint, shown

    if not names:
        return runs
    plan = runs.attrs["plan"]
    known = [experiment.name for experiment in plan.experiments]
    if absent := [name for name in names if name not in known]:
        raise BenchError(*(f"--experiments: there is no {shown(name)}{hint(name, known)}" for name in absent))
    kept = runs[runs["experiment"].isin(names)]
    experiments = tuple(experiment for experiment in plan.experiments if experiment.name in names)
    kept.attrs = runs.attrs | {"plan": replace(plan, experiments=experiments)}
    return kept


def show_folder(args: argparse.Namespace, command: str) -> int:
    """Prints the tables of `args.folder` and rewrites its files.

    With `--metric`, `--experiments`, `--by` or `--against` the files do not change, since they show the whole suite by
    its own metric and criterion.

    Returns:
        0, or 1 if runs are missing or failed, or records are damaged or in conflict.
    """
    from msda_bench.results.answers import against_report, folder_report
    from msda_bench.results.files import write_results
    from msda_bench.results.leaderboard import analyse

    reference, runs = reference_of(args), load_folder(args)
    if reference is not None:
        return show(args, against_report(command, runs, reference))
    analysis = analyse(runs)
    report = folder_report(command, analysis, runs.attrs["fault_lines"])
    is_part = bool(args.metric or args.experiments or args.by)
    return show(args, report, None if is_part else partial(write_results, args.folder, analysis))


def show(args: argparse.Namespace, report: Report, write: Callable[[], Path | None] | None = None) -> int:
    """Prints a report as the options request.

    Args:
        args: the arguments; options that the command does not have are at their defaults.
        report: what the command answers.
        write: writes the command's files, even if the reader closes the output; returns one to name to the user.

    Returns:
        The exit code: 0, or 1 if the report is not complete.

    Raises:
        BenchError: no table has a method of `--methods`, or it is given with csv, which has them all.
    """
    form, quiet = getattr(args, "format", "simple"), getattr(args, "quiet", False)
    if form == "csv" and report.data is not None and getattr(args, "methods", ()):
        raise BenchError("--methods is for tables; csv has every method, so leave it out")
    path = None
    try:
        if form == "csv" and report.data is not None:
            from msda_bench.results.tables import csv_text

            print(csv_text(report.data), end="")
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
    from msda_bench.results.report import Line
    from msda_bench.results.tables import check_methods

    methods = getattr(args, "methods", ())
    check_methods(report.tables, methods)
    shown = []
    for section in report.sections:
        tables = [table.cut(methods) for table in section.tables]
        if methods:
            tables = [table for table in tables if table.names and len(table.rows)]
        shown.append((section, tables))
    several, said = sum(len(tables) for _, tables in shown) > 1, set[str]()
    for section, tables in shown:
        for table in tables:
            _print_table(table, form, quiet=quiet, several=several)
            _print_lines((Line("caption", note) for note in table.notes if note not in said), form, quiet=quiet)
            said |= {*table.notes}
        if tables or not section.tables:
            _print_lines(section.lines, form, quiet=quiet)


def _print_table(table: Table, form: str, *, quiet: bool, several: bool) -> None:
    from msda_bench.results.tables import WIDTH, heading, paragraph, render

    width, unicode = _screen()
    text = render(table, form, width, unicode=unicode)
    if form != "simple":
        say_text(f"{heading(table, form)}{text}\n" if several else text)
        return
    verdict = "" if quiet else paragraph(" ".join(table.verdict), min(WIDTH, width), "")
    title = paragraph(table.title, min(WIDTH, width))
    _say("\n" + "\n\n".join(filter(None, (title, verdict, text))) + "\n", unicode=unicode)


def _print_lines(lines: Iterable[Line], form: str, *, quiet: bool) -> None:
    """Prints sentences with plain tables, without captions if `quiet`; tells of missing tables in any format."""
    from msda_bench.results.tables import WIDTH, paragraph

    width, unicode = _screen()
    for line in lines:
        if (form == "simple" and not (quiet and line.kind == "caption")) or line.kind == "nothing":
            text = paragraph(str(line), min(WIDTH, width)) if line.wrapped else str(line)
            _say(text, unicode=unicode)


def _screen() -> tuple[int, bool]:
    """The line width, and whether the output can show more than ASCII."""
    from msda_bench.results.tables import TABLE_WIDTH

    if not sys.stdout.isatty():
        return TABLE_WIDTH, False
    return shutil.get_terminal_size().columns, (sys.stdout.encoding or "").lower().startswith("utf")


def _say(text: str, *, unicode: bool) -> None:
    say_text(text.replace("+-", "±") if unicode else text.encode("ascii", "backslashreplace").decode())
