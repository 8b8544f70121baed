"""What `msda-bench run` does with a loaded suite: trains what is missing, and answers with the tables."""

from __future__ import annotations

import argparse
import math
import os
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import torch
from rich.console import Console

from msda_bench.cli.forecast import forecast
from msda_bench.cli.lines import say_text, warn, warn_of
from msda_bench.cli.tables import show
from msda_bench.engine import machine
from msda_bench.errors import LONGEST_LINE, BenchError, printable, reported
from msda_bench.plugins import Registry
from msda_bench.results import files
from msda_bench.results.answers import folder_report
from msda_bench.results.frame import read_runs, tuned
from msda_bench.results.leaderboard import analyse
from msda_bench.results.notes import all_ok, scorers_raised
from msda_bench.results.ranking import against_report
from msda_bench.results.reference import Reference, deviations, read_reference
from msda_bench.results.report import Column, Line, Report, Section, Table
from msda_bench.results.words import counted
from msda_bench.running.data import check_sizes, ensure_data
from msda_bench.running.execute import Executor, Setup, executors
from msda_bench.running.other_project import data_changed
from msda_bench.running.progress import LiveProgress, PlainProgress
from msda_bench.running.runner import Summary, Survey, run_suite, shard_of, survey
from msda_bench.running.shift import pictures
from msda_bench.store import Store, arrays
from msda_bench.store.record import RESULTS
from msda_bench.store.shift import read_shifts, write_shifts
from msda_bench.store.store import DamagedPlanError
from msda_bench.suite.expand import Expansion
from msda_bench.suite.own_estimator import OWN_SCHEME
from msda_bench.suite.plan import Plan, PlannedRun
from msda_bench.suite.run_spec import RunSpec
from msda_bench.suite.subset import select_cells

_MOST_TOGETHER = 64
"""The maximum number of cells in a job on a GPU; the engine stacks as many of them as fit into memory."""
_READINGS = 3
"""How often tables are made while others train into the folder; one that ended meanwhile may have newer ones."""


class Work(NamedTuple):
    """A suite's tables and cells, what trains them, and where it reports."""

    expansion: Expansion
    registry: Registry
    trains: type[Executor]
    aside: Console


def train_suite(args: argparse.Namespace, work: Work) -> int:
    """Trains what is missing into `args.folder`, writes the tables and prints them; returns the exit code."""
    plan, cells = work.expansion.plan, work.expansion.cells
    reference = None if args.against is None else read_reference(args.against)
    if reference is not None:  # refuses a suite of another protocol before anything is trained
        places = ((cell.experiment, cells[cell.key].to_json()) for cell in plan.cells)
        if lines := [*deviations(reference, plan, places)]:
            raise BenchError(*lines)
    folder = args.folder = args.out / plan.suite
    files.refuse_result_folders(args.out)
    store = Store.find(folder)
    chosen = plan.cells if args.only is None else select_cells(plan, ",".join(args.only))
    stages = _Stages(plan, chosen if args.shard is None else shard_of(chosen, args.shard))
    if store is not None and data_changed(store, cells):
        what = f"the data have changed, so that this suite has none of the {len(store.results)} stored runs"
        warn(f"{folder}: {what}; if they are another project's, write another `name` into the suite")
    if not args.dry_run:  # which runs none of their code
        ask_trust(args.suite, cells.values(), trusted=args.trust_files)
    if args.dry_run:
        surveyed = survey(work.expansion, store, stages.first + stages.rest(store), args.limit)
        show(args, _survey_report(surveyed, folder, stages.waiting))
        return 0
    surveyed = survey(work.expansion, store, stages.first, args.limit)
    if line := forecast(args.suite, work.expansion, surveyed.missing, store):
        work.aside.print(line, markup=False, highlight=False)
    store, summary = _train(args, work, surveyed, store)
    if stages.tunes and not summary.interrupted:
        limit = None if args.limit is None else args.limit - len(surveyed.missing)
        surveyed = survey(work.expansion, store, stages.rest(store), limit)
        work.aside.print(f"{folder}: {stages.describe(len(surveyed.missing))}", markup=False, highlight=False)
        store, later = _train(args, work, surveyed, store)
        summary = replace(later.after(summary), planned=stages.planned, stuck=stages.stuck)
        warn_of(f"{folder}: {line}" for line in stages.gaps())
    _keep_shifts(args, work, summary)
    return _conclude(args, summary, store, plan, reference)


def ask_trust(suite: Path, cells: Iterable[RunSpec], *, trusted: bool) -> None:
    """Refuses to run code of files that the suite names unless the user says so.

    Raises:
        BenchError: the suite names such a file.
    """
    own = (cell.scheme for cell in cells if cell.scheme.name == OWN_SCHEME)
    files = dict.fromkeys(file for scheme in own for file in scheme.file_paths.values() if file)
    if files and not trusted:
        raise BenchError(
            f"{suite} runs the code of {', '.join(files)}: look into it, then add --trust-files "
            "(trust_files=True in Python)"
        )


class _Stages:
    """The selected cells of a plan; those that are trained first are all, unless settings are chosen on tuning seeds.

    Attributes:
        first: the cells on tuning seeds, or all cells.
        tunes: whether there are others.
        waiting: how many selected runs wait for tuning cells.
        stuck: how many have no candidate to choose.
        planned: all cells of the plan, as far as is known.
    """

    def __init__(self, plan: Plan, selected: tuple[PlannedRun, ...]) -> None:
        self._plan, self._selected = plan, selected
        self._tuning = {table.name: table.tuning for table in plan.experiments if table.tuning is not None}
        self.tunes = bool(self._tuning)
        self.first = tuple(filter(self._is_tuning, selected)) if self.tunes else selected
        self.waiting = self.stuck = self.planned = self._chosen = 0

    def rest(self, store: Store | None) -> tuple[PlannedRun, ...]:
        """The other cells, as far as the records of the first have chosen them."""
        if not self.tunes:
            return ()
        choices = tuned(self._plan, store)
        unfinished, without = choices.without(unfinished=True), choices.without(unfinished=False)
        others = [cell for cell in self._selected if not self._is_tuning(cell)]
        runs = {(cell.experiment, cell.method, cell.target, cell.seed) for cell in others}
        self.waiting = sum(run[:3] in unfinished for run in runs)
        self.stuck = sum(run[:3] in without for run in runs)
        self._chosen = len(choices.numbers) - len(unfinished | without)

        def wanted(cell: PlannedRun) -> bool:
            where = cell.experiment, cell.method, cell.target
            return cell.experiment not in self._tuning or cell.candidate in choices.numbers[where]

        self.planned = len({cell.key for cell in self._plan.cells if self._is_tuning(cell) or wanted(cell)})
        return tuple(filter(wanted, others))

    def describe(self, missing: int) -> str:
        """One line on what was chosen."""
        tracks = dict.fromkeys(by for tuning in self._tuning.values() for by in tuning.tracks)
        where = f"for {self._chosen} pairs of method and target"
        left = f"{counted(missing, 'run')} of theirs to train"
        return f"settings chosen on tuning seeds ({', '.join(tracks)}) {where}; {left}"

    def gaps(self) -> Iterator[str]:
        """A line for runs that wait, and one for those without any candidate to choose."""
        if self.waiting:
            waiting = counted(self.waiting, "run")
            yield f"{waiting} must wait for tuning runs without a result; train these, then run again"
        if self.stuck:
            yield f"{counted(self.stuck, 'run')} cannot train, since no candidate has a score on the tuning seeds"

    def _is_tuning(self, cell: PlannedRun) -> bool:
        return cell.experiment in self._tuning and cell.seed in self._tuning[cell.experiment].seeds


def _train(args: argparse.Namespace, work: Work, surveyed: Survey, store: Store | None) -> tuple[Store, Summary]:
    """Trains what a survey misses into the suite's folder below `args.out`."""
    expansion, registry, trains, aside = work
    device = find_device(args.device) if args.scheduler is None else str(args.device)
    if device == "cpu" and args.stack is not None:
        raise BenchError("--stack is for a GPU; on the CPU every run trains alone, which is faster there")

    def report(line: str) -> None:
        aside.print(printable(line, LONGEST_LINE), markup=False, highlight=False)

    if surveyed.missing:
        check_sizes(surveyed.missing.values(), registry)  # before the data are prepared, which may take long
        ensure_data(surveyed.missing.values(), registry, report, fetch=args.fetch, device=device)
        check_sizes(surveyed.missing.values(), registry)
    store = store or Store.create(args.out / expansion.plan.suite)
    warn_of(_without_arrays(store, expansion, surveyed))
    _keep_plan(store, expansion.plan)
    if surveyed.missing:
        _begin(args, store, device, surveyed.missing.values())
    executor = make_executor(args, trains, device)
    # Redrawing a progress bar would hide a debugger's prompt.
    observer = LiveProgress(aside) if executor.has_processes and aside.is_terminal else PlainProgress(aside)
    together = cells_of_a_job(executor, len(surveyed.missing))
    summary = run_suite(surveyed, store, executor, observer, together, keep_going=args.keep_going)
    for note in summary.notes if args.quiet else ():
        warn(note)
    return store, summary


def _without_arrays(store: Store, expansion: Expansion, surveyed: Survey) -> Iterator[str]:
    """A line for each kind of array that the suite keeps but stored results do not have."""
    there = store.arrays.names()
    for name in arrays.KINDS:
        asked = [
            key for key, event in surveyed.ended.items() if event.status == "ok" and name in expansion.cells[key].keep
        ]
        without = len(asked) - sum(store.results[key].arrays.get(name) in there for key in asked)
        if without:
            yield (
                f"{store.folder}: {without} stored runs have no {name}, which only training makes; to train them "
                "again, run with another --out"
            )


def _keep_plan(store: Store, plan: Plan) -> None:
    former = None
    try:
        former = store.read_plan() if store.has_plan() else None
    except DamagedPlanError as error:
        warn(str(error))
    if former == plan:
        return
    store.write_plan(plan)
    beyond = len(store.refresh().results.keys() - {cell.key for cell in plan.cells}) if former is not None else 0
    if beyond:
        warn(f"{store.folder}: the suite has changed; {beyond} stored runs are no longer in it and stay unused")


def _begin(args: argparse.Namespace, store: Store, device: str, cells: Iterable[RunSpec]) -> None:
    """Prepares training: refuses settings that need a GPU, keeps the command, warns if numba is missing."""
    if device == "cpu" and any(cell.training.precision == "tf32" for cell in cells):
        raise BenchError("the suite asks for precision tf32, which only a GPU has; on the CPU use float32 or bf16")
    store.add_commands([shlex.join(["msda-bench", *args.words])])
    if not machine.can_compile():
        warn("numba cannot be used here: runs on the CPU take the slower plain loops, which round differently")


def find_executor(args: argparse.Namespace) -> type[Executor]:
    """The class of the executor that the options name."""
    registry = executors()
    warn_of(registry.problems)
    cls: type[Executor] = registry.entry("executor", args.executor).cls  # type: ignore[assignment]
    cls.check(args.scheduler)
    if args.timeout is not None and not cls.has_processes:
        raise BenchError(f"--timeout needs processes that can be ended; remove --executor {args.executor}")
    if args.scheduler is None:
        return cls
    if not cls.has_scheduler:
        raise BenchError(f"--scheduler is not for --executor {args.executor}; add that of the scheduler, such as dask")
    if args.workers is not None:
        raise BenchError("--workers is for this machine; the cluster of --scheduler has its own")
    if args.device == "auto":
        raise BenchError("--scheduler needs --device cpu or cuda: this command cannot see its workers' devices")
    return cls


def find_device(device: str) -> str:
    """The device to train on: "cpu" or "cuda"; a BenchError if a GPU is requested, but PyTorch finds none."""
    if device == "cpu":
        return device
    there = torch.cuda.is_available()
    if device == "cuda" and not there:
        raise BenchError("--device cuda: PyTorch finds no GPU here; use --device cpu")
    return "cuda" if there else "cpu"


def make_executor(args: argparse.Namespace, cls: type[Executor], device: str) -> Executor:
    """The executor with the options; by default with a process for each CPU core or GPU."""
    workers = 1
    if cls.has_processes and args.scheduler is None:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        there = cores if device == "cpu" else max(1, torch.cuda.device_count())
        workers = int(args.workers or there)
        if device != "cpu" and workers > there:
            gpus = "one GPU" if there == 1 else f"{there} GPUs"
            warn(f"--workers {workers}: workers that share {gpus} take longer than one each; leave --workers out")
    return cls(setup=Setup(device, args.stack), workers=workers, timeout=args.timeout, scheduler=args.scheduler)


def cells_of_a_job(executor: Executor, missing: int) -> int:
    """The maximum number of cells in a job: several on a GPU, but few enough that each worker here has a job."""
    if executor.setup.device == "cpu":
        return 1
    return max(1, min(executor.setup.stack or _MOST_TOGETHER, math.ceil(missing / executor.workers)))


def _survey_report(surveyed: Survey, folder: Path, waiting: int) -> Report:
    """What a run would do: how many cells of each method are stored and how many would be trained."""
    missing = Counter((cell.experiment, cell.method) for cell in surveyed.selected if cell.key in surveyed.missing)
    selected = Counter((cell.experiment, cell.method) for cell in surveyed.selected)
    rows = [(*method, count - missing[method], missing[method]) for method, count in selected.items()]
    names = ("experiment", "method", "stored", "to_train")
    columns = tuple(Column(name.replace("_", " "), "text", [name]) for name in names)
    table = Table("dry-run", "runs of each method", pd.DataFrame(rows, columns=names), columns)
    beyond = f", {surveyed.left} skipped by --limit" if surveyed.left else ""
    train = f"{len(surveyed.missing)} to train{beyond}"
    train += f"; {counted(waiting, 'run')} must wait for what is chosen on tuning seeds" if waiting else ""
    line = Line("line", f"{folder}: {surveyed.stored} runs stored, {train}; nothing was changed", wrapped=False)
    return Report((Section((table,), (line,)),), complete=not surveyed.missing)


def _keep_shifts(args: argparse.Namespace, work: Work, summary: Summary) -> None:
    """Keeps how the inputs of the user's own data differ between domains, for the page."""
    if args.no_shift or summary.interrupted or args.scheduler is not None:  # whose data may be elsewhere
        return
    known = read_shifts(args.folder)
    if made := dict(pictures(work.expansion, work.registry, known, find_device(args.device))):
        write_shifts(args.folder, known | made)


def _conclude(args: argparse.Namespace, summary: Summary, store: Store, plan: Plan, reference: Reference | None) -> int:
    """Writes the tables of a result folder, unless interrupted, and prints them, among those of the reference."""
    ended = f"{store.folder}: {summary.describe()}"
    if summary.interrupted:
        warn(ended)
        raise KeyboardInterrupt
    for _ in range(_READINGS):
        analysis = analyse(read_runs(store, plan))
        files.write_results(store.folder, analysis)
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
