"""Code shared by the commands that show a result folder."""

from __future__ import annotations

import argparse
import contextlib
import errno
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from msda_bench.cli.lines import say_text, warn
from msda_bench.errors import BenchError, StoreError

if TYPE_CHECKING:
    import pandas as pd

    from msda_bench.results.leaderboard import Analysis
    from msda_bench.results.tables import Table

Command: TypeAlias = Literal["leaderboard", "compare", "run"]

_MORE = ("csv", "json")
_READ_ONLY = {errno.EACCES, errno.EPERM, errno.EROFS}


def add_output_options(
    parser: argparse.ArgumentParser, quiet: str = "print no verdict and no explanation of the tables"
) -> None:
    """Adds `--quiet`, with this help text, and `--json`."""
    parser.add_argument("--quiet", action="store_true", help=quiet)
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of tables")


def add_table_options(parser: argparse.ArgumentParser, *, columns: str = "books,average") -> None:
    """Adds `--format`, `--digits`, `--columns` (with these as examples), `--methods` and `--transpose`."""
    add = parser.add_argument
    add(
        "--format",
        metavar="NAME",
        default="simple",
        help="csv, json or a format of tabulate: github, latex_booktabs, ...",
    )
    add("--digits", metavar="N", type=int, default=2, choices=range(10), help="digits after the point (default: 2)")
    add("--columns", metavar="A,B", type=_names, default=[], help=f"only these columns, such as {columns}")
    add("--methods", metavar="A,B", type=_names, default=[], help="only these methods")
    add("--transpose", action="store_true", help="swap rows and columns")


def add_experiments_option(parser: argparse.ArgumentParser) -> None:
    """Adds `--experiments`."""
    what = "only these experiments of the folder; its files do not change"
    parser.add_argument("--experiments", metavar="A,B", type=_names, default=[], help=what)


def add_metric_option(parser: argparse.ArgumentParser) -> None:
    """Adds `--metric`."""
    what = "show this metric, such as macro_f1, instead of the suite's; of several, each table shows one for its task"
    parser.add_argument("--metric", metavar="NAME", type=_names, default=[], help=what)


def _names(text: str) -> list[str]:
    return [name for part in text.split(",") if (name := part.strip())]


def check_format(args: argparse.Namespace) -> None:
    """Refuses an unknown `--format`; turns `--format json` into `--json`.

    Raises:
        BenchError: the format does not exist.
    """
    from msda_bench.results.tables import TEXT_FORMATS
    from msda_bench.suite.mistakes import hint, shown

    known = (*_MORE, *TEXT_FORMATS)
    if args.format not in known:
        raise BenchError(f"--format {shown(args.format)}: unknown format{hint(args.format, known)}")
    if args.format == "json":
        args.json = True


def load_folder(args: argparse.Namespace) -> pd.DataFrame:
    """Loads the runs of `args.folder`; puts damaged records in quarantine and reports them on stderr.

    Raises:
        BenchError: the folder cannot be read, or an experiment of `--experiments` is missing from it.
    """
    from msda_bench.results.frame import load_results

    runs = load_results(args.folder, repair=True, metric=getattr(args, "metric", ()))
    report_faults(runs)
    return only_experiments(runs, getattr(args, "experiments", ()))


def only_experiments(runs: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Keeps the runs of these experiments, as if no others had been planned; all runs if none are named.

    Raises:
        BenchError: there is no such experiment.
    """
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


def show_folder(args: argparse.Namespace, command: Command) -> int:
    """Prints the tables of `args.folder` and rewrites its files, even if the reader closes the output.

    With `--metric` or `--experiments` the files do not change, since they show the whole suite by its own metric.

    Returns:
        0, or 1 if runs are missing or failed, or records are damaged or in conflict.
    """
    from msda_bench.results.files import write_results
    from msda_bench.results.leaderboard import analyse

    runs = load_folder(args)
    is_part = bool(args.metric or args.experiments)
    analysis = analyse(runs)
    try:
        print_analysis(args, command, [args.folder], analysis, runs.attrs["fault_lines"])
    finally:
        if not is_part:
            with beside_output(args.folder):
                write_results(args.folder, analysis)
    return 0 if is_whole(runs) else 1


@contextlib.contextmanager
def beside_output(folder: Path) -> Iterator[None]:
    """For files that a command writes into a result folder beside what it prints: a read-only folder is a warning."""
    try:
        yield
    except StoreError as error:
        if not (isinstance(error.__cause__, OSError) and error.__cause__.errno in _READ_ONLY):
            raise
        warn(f"warning: {folder} is read-only, so its files stay as they are: {error}")


def print_analysis(
    args: argparse.Namespace, command: Command, folders: Iterable[Path], analysis: Analysis, faults: Sequence[str]
) -> None:
    """Prints an analysis for a command: tables, CSV or one JSON document.

    Args:
        args: the arguments, with the options of `add_table_options` and `add_output_options`.
        command: the command; `compare` shows pairs of methods, the others show the leaderboard.
        folders: the result folders.
        analysis: the analysis of their runs.
        faults: a line for each record that is damaged or in conflict.
    """
    from msda_bench.results.experiment_tables import (
        SECONDS,
        across_tables,
        leaderboard_table,
        pairs_notes,
        pairs_tables,
        remarks,
        views,
    )
    from msda_bench.results.files import tables_json

    rows = analysis.comparisons if command == "compare" else analysis.leaderboard
    if print_data(args, rows, lambda: tables_json(command, folders, analysis, faults)):
        return
    shown = list(views(analysis, args.marks, args.digits, timed=SECONDS in args.columns))
    if command != "compare":
        print_parts(args, [Part(map(leaderboard_table, shown))])
        return
    parts = [Part(pairs_tables(view), pairs_notes(view), remarks(view)) for view in shown]
    print_parts(args, [*parts, Part(across_tables(analysis.across, args.digits))])


def print_data(args: argparse.Namespace, rows: pd.DataFrame, document: Callable[[], dict[str, Any]]) -> bool:
    """Prints rows as CSV, or one JSON document, if the options request it.

    Returns:
        Whether anything was printed.
    """
    from msda_bench.results.serialize import csv_text, json_text

    if args.json:
        print(json_text(document()))
    elif args.format == "csv":
        print(csv_text(rows), end="")
    else:
        return False
    return True


class Part(NamedTuple):
    """Tables, and the paragraphs below them; `--quiet` hides the notes."""

    tables: Iterable[Table]
    notes: Iterable[str] = ()
    lines: Iterable[str] = ()


def print_parts(args: argparse.Namespace, parts: Iterable[Part]) -> None:
    """Prints tables as the options request, without those in which `--columns` and `--methods` leave nothing.

    Plain tables have their titles and remarks, and without `--quiet` verdicts and notes.

    Raises:
        BenchError: no table has a column of `--columns` or a method of `--methods`.
    """
    from msda_bench.results.tables import check_names

    whole = [part._replace(tables=list(part.tables)) for part in parts]
    check_names([table for part in whole for table in part.tables], args.columns, args.methods)
    for part in whole:
        cut = [table.cut(args.columns, args.methods) for table in part.tables]
        kept = [table for table in cut if table.columns and len(table.cells)] if args.columns or args.methods else cut
        for table in kept:
            _print_table(args, table)
        if kept or not cut:
            print_notes(args, part.notes)
            print_lines(args, part.lines)


def _print_table(args: argparse.Namespace, table: Table) -> None:
    from msda_bench.results.tables import render

    width, unicode = _screen()
    text = render(table.transposed() if args.transpose else table, args.format, width, unicode=unicode)
    if args.format != "simple":
        say_text(text)
        return
    verdict = "" if args.quiet else _wrapped(" ".join(table.verdict), width, "")
    _say("\n" + "\n\n".join(filter(None, (_wrapped(table.title, width), verdict, text))) + "\n", unicode=unicode)
    print_notes(args, table.notes)
    print_lines(args, table.remarks)


def print_notes(args: argparse.Namespace, notes: Iterable[str]) -> None:
    """Prints paragraphs with plain tables, unless `--quiet` is given."""
    if not args.quiet:
        print_lines(args, notes)


def print_lines(args: argparse.Namespace, lines: Iterable[str]) -> None:
    """Prints paragraphs with plain tables, even with `--quiet`."""
    width, unicode = _screen()
    if args.format == "simple":
        for line in lines:
            _say(_wrapped(line, width), unicode=unicode)


def _screen() -> tuple[int, bool]:
    """The line width, and whether the output can show more than ASCII."""
    from msda_bench.results.tables import TABLE_WIDTH

    if not sys.stdout.isatty():
        return TABLE_WIDTH, False
    return shutil.get_terminal_size().columns, (sys.stdout.encoding or "").lower().startswith("utf")


def _wrapped(text: str, width: int, indent: str = "  ") -> str:
    from msda_bench.results.tables import WIDTH, paragraph

    return paragraph(text, min(WIDTH, width), indent)


def _say(text: str, *, unicode: bool) -> None:
    say_text(text.replace("+-", "±") if unicode else text.encode("ascii", "backslashreplace").decode())


def report_faults(runs: pd.DataFrame) -> None:
    """Reports on stderr each record of a folder that is damaged or in conflict."""
    for line in runs.attrs["fault_lines"]:
        warn(line)


def is_whole(runs: pd.DataFrame) -> bool:
    """Whether every run is ok and no record is damaged or in conflict."""
    from msda_bench.results.select import select

    return bool(not runs.attrs["fault_lines"] and (select(runs)["status"] == "ok").all())
