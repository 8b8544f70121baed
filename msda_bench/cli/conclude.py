"""What `msda-bench run` answers: the final summary, or that of a dry run."""

from __future__ import annotations

import argparse
import shlex
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from msda_bench.cli.lines import say_text, warn, warn_of
from msda_bench.cli.tables import show
from msda_bench.errors import reported

if TYPE_CHECKING:
    from msda_bench.results.reference import Reference
    from msda_bench.results.report import Report
    from msda_bench.running.runner import Summary, Survey
    from msda_bench.store import Store
    from msda_bench.suite.plan import Plan

_READINGS = 3
"""How often tables are made while others train into the folder; one that ended meanwhile may have newer ones."""


def survey_report(survey: Survey, folder: Path, waiting: int) -> Report:
    """What a run would do: how many cells of each method are stored and how many would be trained."""
    import pandas as pd

    from msda_bench.results.report import Column, Line, Report, Section, Table
    from msda_bench.results.words import counted

    missing = Counter((cell.experiment, cell.method) for cell in survey.selected if cell.key in survey.missing)
    selected = Counter((cell.experiment, cell.method) for cell in survey.selected)
    rows = [(*method, count - missing[method], missing[method]) for method, count in selected.items()]
    names = ("experiment", "method", "stored", "to_train")
    columns = tuple(Column(name.replace("_", " "), "text", [name]) for name in names)
    table = Table("dry-run", "cells of each method", pd.DataFrame(rows, columns=names), columns)
    beyond = f", {survey.left} skipped by --limit" if survey.left else ""
    train = f"{len(survey.missing)} to train{beyond}"
    train += f"; {counted(waiting, 'run')} must wait for what is chosen on tuning seeds" if waiting else ""
    line = Line("line", f"{folder}: {survey.stored} cells stored, {train}; nothing was changed", wrapped=False)
    return Report((Section((table,), (line,)),), complete=not survey.missing)


def conclude(args: argparse.Namespace, summary: Summary, store: Store, plan: Plan, reference: Reference | None) -> int:
    """Writes the tables of a result folder and prints them, among those of the reference.

    Returns:
        The exit code.

    Raises:
        KeyboardInterrupt: the run was interrupted; no tables are written.
    """
    from msda_bench.results.answers import against_report, folder_report
    from msda_bench.results.files import write_results
    from msda_bench.results.frame import read_runs
    from msda_bench.results.leaderboard import analyse
    from msda_bench.results.notes import all_ok, scorers_raised
    from msda_bench.store.record import RESULTS

    ended = f"{store.folder}: {summary.describe()}"
    if summary.interrupted:
        warn(ended)
        raise KeyboardInterrupt
    for _ in range(_READINGS):
        analysis = analyse(read_runs(store, plan))
        write_results(store.folder, analysis)
        count = len(store.results)
        if len(store.refresh().results) == count:
            break
    conflicts = [*store.conflicting(cell.key for cell in plan.cells).values()]
    if reference is None:
        report = folder_report("run", analysis, conflicts)
    else:
        report = against_report("run", analysis.runs, reference)
    is_part = args.only is not None or args.limit is not None or args.shard is not None
    whole = not scorers_raised(analysis.selected) if is_part else all_ok(analysis.selected)
    complete = summary.complete and not conflicts and whole
    code = show(args, replace(report, complete=complete))
    kept = [one.traceback for one in summary.failed if one.traceback is not None]
    first = "the traceback" if len(kept) == 1 else f"the first of {len(kept)} tracebacks"
    if kept:
        say_text(f"{first} is in {kept[0]}, under provenance\n")
    lines: list[str] = []
    with reported(lines):
        lines += store.seal() if analysis.selected["status"].isin(RESULTS).all() else []
    warn_of(lines)
    if not args.quiet:
        against = () if args.against is None else ("--against", str(args.against))
        say_text(f"{ended}\nnext: {shlex.join(['msda-bench', 'report', str(store.folder), *against])}")
    return code
