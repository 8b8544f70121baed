"""Code shared by the commands that show a result folder."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pandas as pd

from msda_bench.cli.lines import out, out_width, say, say_text, say_whole, warn
from msda_bench.errors import BenchError, StoreError
from msda_bench.results.command_reports import folder_report
from msda_bench.results.experiment_tables import views
from msda_bench.results.files import write_results
from msda_bench.results.frame import load_results
from msda_bench.results.leaderboard import analyse
from msda_bench.results.model_selection import select
from msda_bench.results.ranking import against_report
from msda_bench.results.reference import Reference, read_reference
from msda_bench.results.report import Line, Report
from msda_bench.results.runs import results_of, with_results
from msda_bench.results.tables import TABLE_WIDTH, WIDTH, check_methods, csv_text, heading, paragraph, render
from msda_bench.suite.issues import hint, shown_value

_READ_ONLY = {errno.EACCES, errno.EPERM, errno.EROFS}


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """Which part of a folder a command shows, and how. The defaults are those of commands without the option.

    Attributes:
        against: the name or path of a reference among whose methods those of the folder are ranked.
        by: the criterion that selects settings instead of the suite's.
        experiments: the names of those to show; all if empty.
        methods: the names of those to show; all if empty.
        metric: the metrics to show instead of the suite's.
        format: simple, csv, github or latex.
        quiet: whether verdicts and explanations are left out.
    """

    against: str | None = None
    by: str | None = None
    experiments: Sequence[str] = ()
    methods: Sequence[str] = ()
    metric: Sequence[str] = ()
    format: str = "simple"
    quiet: bool = False

    @property
    def is_part(self) -> bool:
        """Whether something else is shown than the whole suite by its own metric and criterion."""
        return bool(self.metric or self.experiments or self.by)

    def reference(self) -> Reference | None:
        """The reference of `against`, or None."""
        if self.against is None:
            return None
        if self.metric or self.by:
            raise BenchError("--metric and --by are not for --against: a reference has the suite's metric and choice")
        return read_reference(self.against)


def load_folder(folder: Path, options: TableOptions) -> pd.DataFrame:
    """Loads the part of a folder that the options name; prints a line on each bad record to stderr."""
    runs: pd.DataFrame = load_results(folder, metric=options.metric)
    for line in results_of(runs).fault_lines:
        warn(line)
    if options.experiments:
        runs = _only_experiments(runs, options.experiments)
    if options.by is None:
        return runs
    criteria = list(dict.fromkeys(name for table in results_of(runs).plan.experiments for name in table.criteria))
    if options.by not in criteria:
        why = hint(options.by, criteria) if criteria else ": the suite selects no settings"
        raise BenchError(f"--by {shown_value(options.by)}: is no criterion of this folder{why}")
    return select(runs, options.by)


def _only_experiments(runs: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """The runs of some experiments, as if the others had not been planned."""
    results = results_of(runs)
    known = [experiment.name for experiment in results.plan.experiments]
    if absent := [name for name in names if name not in known]:
        raise BenchError(*(f"--experiments: there is no {shown_value(name)}{hint(name, known)}" for name in absent))
    kept = tuple(one for one in results.plan.experiments if one.name in names)
    plan = replace(results.plan, experiments=kept)
    return with_results(runs[runs["experiment"].isin(names)], replace(results, plan=plan))


def show_folder(folder: Path, options: TableOptions, command: str) -> int:
    """Prints the tables of a folder and rewrites its files; returns the exit code.

    With `--metric`, `--experiments`, `--by` or `--against` the files do not change, since they show the whole suite by
    its own metric and criterion.
    """
    reference, runs = options.reference(), load_folder(folder, options)
    if reference is not None:
        return show(against_report(command, runs, reference), options)
    analysis = analyse(runs)
    shown_views = tuple(views(analysis))
    report = folder_report(command, analysis, shown_views)
    return show(report, options, None if options.is_part else partial(write_results, folder, analysis, shown_views))


def show(report: Report, options: TableOptions, write: Callable[[], Path | None] | None = None) -> int:
    """Prints a report as the options request; returns the exit code.

    `write` writes the command's files, even if the reader closes the output; it returns one to name to the user.
    """
    rows = report.data if options.format == "csv" else None
    if rows is not None and options.methods:
        raise BenchError("--methods is for tables; csv has every method, so leave it out")
    path = None
    try:
        if rows is None:
            _print(report, options)
        else:
            say_whole(csv_text(rows))
    finally:
        if write is not None:
            path = _written(write)
    if path is not None and options.format == "simple" and not options.quiet:
        say(str(path))
    return 0 if report.complete else 1


def _written(write: Callable[[], Path | None]) -> Path | None:
    """Writes the files of a folder; a read-only one is shown all the same."""
    try:
        return write()
    except StoreError as error:
        if not (isinstance(error.__cause__, OSError) and error.__cause__.errno in _READ_ONLY):
            raise
        warn(f"warning: the folder is read-only, so its files stay as they are: {error}")
        return None


def _print(report: Report, options: TableOptions) -> None:
    """Prints the tables, without those in which `--methods` leaves nothing, and their sentences."""
    methods, form, quiet = options.methods, options.format, options.quiet
    check_methods(report.tables, methods)
    shown = []
    for section in report.sections:
        tables = [table.cut(methods) for table in section.tables]
        if methods:
            tables = [table for table in tables if table.names and len(table.rows)]
        shown.append((section, tables))
    several = sum(len(tables) for _, tables in shown) > 1
    said: set[str] = set()
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
    """Prints the sentences below plain tables, without captions if `quiet`; in other formats only of missing tables."""
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
