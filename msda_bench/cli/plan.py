"""`msda-bench plan SUITE`: says before a suite is run what it takes to find a gain, from a few pilot runs."""

from __future__ import annotations

import argparse
import math
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from msda_bench.cli.executor import number, probability
from msda_bench.cli.run import Work, load_work, train
from msda_bench.cli.suites import add_suite_argument
from msda_bench.cli.tables import add_format_option, add_output_options, report_faults

if TYPE_CHECKING:
    import pandas as pd

    from msda_bench.results.report import Line, Report
    from msda_bench.suite.plan import Experiment, Plan, PlannedCell

_SEEDS, _METHODS = 4, 3
"""A pilot has the baseline and two other methods, at four seeds."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds its arguments."""
    add = parser.add_argument
    add_suite_argument(parser)
    add(
        "--detect",
        metavar="GAIN",
        type=lambda text: number(text, float, lambda gain: 0 < gain < math.inf, "a number of points above 0"),
        default=1.0,
        help="the true gain over the baseline that is to be found, in points (1.0)",
    )
    add(
        "--power",
        metavar="P",
        type=probability,
        default=0.8,
        help="the probability with which it is to be found (0.8)",
    )
    what = "take standard deviations and seconds from this result folder of the same or a similar suite, train nothing"
    add("--pilot", type=Path, metavar="DIR", help=what)
    what = "parent of the suite's result folder, where pilot runs are stored (results)"
    add("--out", type=Path, default=Path("results"), metavar="DIR", help=what)
    add_format_option(parser)
    add_output_options(parser, "print no progress, no verdict and no explanation of the table")
    parser.set_defaults(device="auto", executor="local", scheduler=None, stack=None, workers=None, timeout=None)
    parser.set_defaults(fetch=False, keep_going=False)


def command(args: argparse.Namespace) -> Report:
    """Reports what the suite takes; trains pilot runs if there is no `--pilot`."""
    from msda_bench.results.frame import load_results
    from msda_bench.results.power_text import plan_report
    from msda_bench.results.report import Line
    from msda_bench.running.runner import survey
    from msda_bench.store import Store

    work = load_work(args)
    folder = args.out / work.expansion.plan.suite
    if args.pilot is None:
        runs, lines = _trained(args, work, folder)
    else:
        runs = load_results(args.pilot)
        lines = [Line("note", f"the pilot is {args.pilot}")]
    report_faults(runs)
    missing = survey(work.expansion, Store.find(folder, repair=False), work.expansion.plan.most).missing
    return plan_report(work.expansion, missing, runs, args.detect, args.power, lines)


def _trained(args: argparse.Namespace, work: Work, folder: Path) -> tuple[pd.DataFrame, list[Line]]:
    """Trains the pilot runs that are missing; returns the suite's runs, and lines on the pilot."""
    from rich.console import Console

    from msda_bench.results.frame import read_runs
    from msda_bench.results.report import Line
    from msda_bench.results.words import counted, listed, spans
    from msda_bench.running.execute import terminable
    from msda_bench.running.runner import survey
    from msda_bench.store import Store

    plan = _with_first(work.expansion.plan)
    store = Store.find(folder)
    surveyed = survey(work.expansion, store, _pilot(plan))
    with terminable():
        store, summary = train(args, work, surveyed, store, Console(stderr=True, soft_wrap=True, quiet=args.quiet))
    if summary.interrupted:
        raise KeyboardInterrupt
    methods = listed(dict.fromkeys(cell.method for cell in surveyed.selected))
    what = f"{counted(summary.selected, 'run')}, {methods} at seeds {spans(cell.seed for cell in surveyed.selected)}"
    trained = f"{summary.trained} trained now in {timedelta(seconds=round(summary.seconds))}"
    lines = [Line("note", f"the pilot is {what}; {trained} into {folder}, from where `msda-bench run` goes on")]
    if not summary.complete:
        lines.append(Line("problem", f"of the pilot's runs, {summary.describe()}"))
    return read_runs(store, plan), lines


def _with_first(plan: Plan) -> Plan:
    """The plan with candidate 0 alone wherever settings are to be chosen on tuning seeds."""
    tuned = {table.name: table.seeds for table in plan.experiments if table.tuning is not None}
    tables = tuple(
        table
        if table.tuning is None
        else replace(
            table, tuning=None, criteria=(), methods=tuple(replace(method, search=None) for method in table.methods)
        )
        for table in plan.experiments
    )
    cells = tuple(
        replace(cell, candidate=None) if cell.experiment in tuned else cell
        for cell in plan.cells
        if cell.experiment not in tuned or (cell.candidate == 0 and cell.seed in tuned[cell.experiment])
    )
    return replace(plan, experiments=tables, cells=cells)


def _pilot(plan: Plan) -> tuple[PlannedCell, ...]:
    """The cells of the pilot."""
    methods = {table.name: _methods(table) for table in plan.experiments}
    seeds = {table.name: table.seeds[:_SEEDS] for table in plan.experiments}
    return tuple(
        cell for cell in plan.cells if cell.method in methods[cell.experiment] and cell.seed in seeds[cell.experiment]
    )


def _methods(table: Experiment) -> list[str]:
    from msda_bench.results.decision import tested

    return [*([table.baseline] if table.baseline else ()), *tested(table)][:_METHODS]
