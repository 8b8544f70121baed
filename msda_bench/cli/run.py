"""`msda-bench run SUITE`: trains missing runs and prints the leaderboard."""

from __future__ import annotations

import contextlib
import shlex
import signal
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msda_bench.cli.lines import say_text, warn, warn_of
from msda_bench.errors import BenchError, reported
from msda_bench.running.options import RunOptions

if TYPE_CHECKING:
    import pandas as pd

    from msda_bench.results.leaderboard import Analysis
    from msda_bench.results.reference import Reference
    from msda_bench.running.runner import Summary
    from msda_bench.running.training import Training
    from msda_bench.store import Store
    from msda_bench.suite.plan import Plan

_READINGS = 3
"""How often tables are made while others train into the folder; one that ended meanwhile may have newer ones."""


def run(
    suite: str | Path,
    out: str | Path = "results",
    *,
    only: str | None = None,
    limit: int | None = None,
    device: str = "auto",
    workers: int | None = None,
    keep_going: bool = False,
    fetch: bool = False,
    quiet: bool = False,
    trust_files: bool = False,
    no_shift: bool = False,
    methods: str | Path | Mapping[str, Any] | None = None,
    against: str | Path | None = None,
) -> pd.DataFrame:
    """Runs a suite as `msda-bench run` does: trains missing runs, writes and prints the leaderboard.

    Args:
        suite: a suite that comes with msda-bench, such as `quickstart`, or a file, such as `mine.yaml`.
        out: parent of the result folder.
        only: a part of the suite, such as `method=DARN,target=books,seed=0-4`.
        limit: the maximum number of runs to train.
        device: auto, cpu or cuda.
        workers: the number of processes that train; None for as many as suit the machine.
        keep_going: whether the other runs are trained although a method's first run fails.
        fetch: whether missing data may be downloaded.
        quiet: print no progress, no verdict and no explanation of the tables.
        trust_files: whether the code of Python files that the suite names as estimators may run.
        no_shift: keep no picture of your own data for the page: two components of at most 1200 rows.
        methods: your own estimators by name, rows beside the suite's: anything with `fit` and `predict`, or
            `{"estimator": it, "sees": "target"}`; or a file with `methods`, which are trained instead of the suite's.
        against: rank them among recorded methods of the same protocol: `reference`, those that come with msda-bench, or
            a result folder or a file of `store reference`.

    Returns:
        The runs of the result folder (`msda_bench.load_results`); those that failed or are missing have their status.

    Raises:
        TypeError, ValueError: an argument has another type, or is out of range.
        BenchError: the suite, a plugin, the data or the result folder cannot be used.
        KeyboardInterrupt: it was interrupted; the same call resumes.
    """
    from pydantic import PositiveInt

    from msda_bench.results.argument_checks import argument
    from msda_bench.results.frame import load_results
    from msda_bench.suite.described import own_methods

    estimators = own_methods(methods) if isinstance(methods, Mapping) else None
    file = None if estimators is not None else argument("methods", methods, str | Path | None)
    only = argument("only", only, str | None)
    against = argument("against", against, str | Path | None)
    options = RunOptions(
        suite=Path(argument("suite", suite, str | Path)),
        out=Path(argument("out", out, str | Path)),
        device=argument("device", device, Literal["auto", "cpu", "cuda"]),
        workers=argument("workers", workers, PositiveInt | None),
        methods=None if file is None else Path(file),
        estimators=estimators,
        against=None if against is None else str(against),
        only=() if only is None else (only,),
        limit=argument("limit", limit, PositiveInt | None),
        trust_files=argument("trust_files", trust_files, bool),
        keep_going=argument("keep_going", keep_going, bool),
        fetch=argument("fetch", fetch, bool),
        no_shift=argument("no_shift", no_shift, bool),
        quiet=argument("quiet", quiet, bool),
    )
    training = _load(options)
    _carry_out(training)
    return load_results(training.folder)


def command(**given: Any) -> int:
    """Trains missing runs and prints the leaderboard; takes the fields of `RunOptions`."""
    return _carry_out(_load(RunOptions(**given)))


def _load(options: RunOptions) -> Training:
    from rich.console import Console

    console = Console(stderr=True, soft_wrap=True, quiet=options.quiet)
    with console.status("loading the suite and its components") if console.is_terminal else contextlib.nullcontext():
        from msda_bench.cli.suites import load
        from msda_bench.running.resources import find_executor
        from msda_bench.running.training import Training

        executor = find_executor(options, _warning)
        registry, suite, expansion = load(options.suite, options.methods, options.estimators)
        warn_of(expansion.warnings)
        options = replace(options, fetch=options.fetch or suite.fetch)
        return Training(options, expansion, registry, executor, console, _warning)


def _warning(line: str) -> None:
    warn_of([line])


def _carry_out(training: Training) -> int:
    """Trains and prints; returns the exit code."""
    from msda_bench.cli.dry_run import dry_run_report
    from msda_bench.cli.tables import TableOptions, show
    from msda_bench.running.execute import Interrupt

    options = training.options
    with Interrupt(signal.SIGTERM) as stop, stop.raising():
        reference = _reference(training)
        if options.dry_run:
            show(dry_run_report(training), TableOptions(quiet=options.quiet))
            return 0
        store, summary = training.train()
        return _conclude(training, summary, store, reference)


def _reference(training: Training) -> Reference | None:
    """The reference to rank the methods in.

    Raises:
        BenchError: it cannot be read, or is of another protocol than the suite.
    """
    from msda_bench.results.reference import deviations, read_reference

    if training.options.against is None:
        return None
    reference = read_reference(training.options.against)
    plan, cells = training.expansion.plan, training.expansion.cells
    planned = ((cell.experiment, cells[cell.key].to_json()) for cell in plan.cells)
    if lines := list(deviations(reference, plan, planned)):
        raise BenchError(*lines)
    return reference


def _conclude(training: Training, summary: Summary, store: Store, reference: Reference | None) -> int:
    """Writes the tables of a result folder, unless interrupted, and prints them, among those of the reference."""
    from msda_bench.cli.tables import TableOptions, show
    from msda_bench.results.command_reports import folder_report
    from msda_bench.results.experiment_tables import views
    from msda_bench.results.notes import all_ok, scorers_raised
    from msda_bench.results.ranking import against_report
    from msda_bench.store.compact import compact
    from msda_bench.store.record import RESULTS

    options, plan = training.options, training.expansion.plan
    if options.quiet:  # otherwise the progress has shown them
        for note in summary.notes:
            warn(note)
    ended = f"{store.folder}: {summary.describe()}"
    if summary.interrupted:
        warn(ended)
        raise KeyboardInterrupt
    analysis = _write_tables(store, plan)
    conflicts = list(store.conflicting(cell.key for cell in plan.cells).values())
    if reference is None:
        report = folder_report("run", analysis, tuple(views(analysis)))
    else:
        report = against_report("run", analysis.runs, reference)
    whole = not scorers_raised(analysis.selected) if options.is_part else all_ok(analysis.selected)
    complete = summary.complete and not conflicts and whole
    code = show(replace(report, complete=complete), TableOptions(quiet=options.quiet))
    _say_tracebacks(summary)
    if analysis.selected["status"].isin(RESULTS).all():
        lines: list[str] = []
        with reported(lines):
            lines += compact(store)
        warn_of(lines)
    if not options.quiet:
        against = () if options.against is None else ("--against", options.against)
        say_text(f"{ended}\nnext: {shlex.join(['msda-bench', 'report', str(store.folder), *against])}")
    return code


def _write_tables(store: Store, plan: Plan) -> Analysis:
    """Writes the tables of a result folder, again if others have trained into it meanwhile."""
    from msda_bench.results import files
    from msda_bench.results.frame import read_runs
    from msda_bench.results.leaderboard import analyse

    for _ in range(_READINGS):
        analysis = analyse(read_runs(store, plan))
        files.write_results(store.folder, analysis)
        count = len(store.results)
        if len(store.refresh().results) == count:
            break
    return analysis


def _say_tracebacks(summary: Summary) -> None:
    kept = [one.traceback for one in summary.failed if one.traceback is not None]
    if kept:
        first = "the traceback" if len(kept) == 1 else f"the first of {len(kept)} tracebacks"
        say_text(f"{first} is in {kept[0]}, under provenance\n")
