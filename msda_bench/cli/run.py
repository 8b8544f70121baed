"""`msda-bench run SUITE`: trains missing cells and prints the leaderboard."""

from __future__ import annotations

import argparse
import contextlib
import shlex
import signal
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from msda_bench.cli.command import Parser
from msda_bench.cli.conclude import conclude, survey_report
from msda_bench.cli.executor import add_options, cells_of_a_job, find_device, find_executor, make_executor, whole_number
from msda_bench.cli.lines import warn, warn_of
from msda_bench.cli.suites import add_suite_argument
from msda_bench.cli.tables import add_shared, show
from msda_bench.errors import LONGEST_LINE, BenchError, printable
from msda_bench.results.words import counted

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from msda_bench.plugins import Registry
    from msda_bench.results.reference import Reference
    from msda_bench.running.execute import Executor
    from msda_bench.running.runner import Observer, Summary, Survey
    from msda_bench.store import Store
    from msda_bench.suite.cell import Cell
    from msda_bench.suite.expand import Expansion
    from msda_bench.suite.plan import Plan, PlannedCell

_PARTS = {"seed": "0-4", "target": "books"}
"""Conditions that users may expect as separate options, with an example of each for `--only`."""


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
    methods: str | Path | None = None,
    against: str | Path | None = None,
) -> pd.DataFrame:
    """Runs a suite as `msda-bench run` does: trains missing cells, writes and prints the leaderboard.

    Args:
        suite: a suite that comes with msda-bench, such as `quickstart`, or a file, such as `mine.yaml`.
        out: parent of the result folder.
        only: a part of the suite, such as `method=DARN,target=books,seed=0-4`.
        limit: the maximum number of cells to train.
        device: auto, cpu or cuda.
        workers: the number of processes that train; None for as many as suit the machine.
        keep_going: whether the other runs are trained although a method's first run fails.
        fetch: whether missing data may be downloaded.
        quiet: print no progress, no verdict and no explanation of the tables.
        methods: a file with `methods`, which are trained instead of the suite's.
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

    from msda_bench.plugins import discover
    from msda_bench.results.door import argument
    from msda_bench.results.frame import load_results
    from msda_bench.suite.load import load_suite

    suite, out = argument("suite", suite, str | Path), argument("out", out, str | Path)
    only, limit = argument("only", only, str | None), argument("limit", limit, PositiveInt | None)
    device, workers = (
        argument("device", device, Literal["auto", "cpu", "cuda"]),
        argument("workers", workers, PositiveInt | None),
    )
    methods, against = argument("methods", methods, str | Path | None), argument("against", against, str | Path | None)
    flags = {"--keep-going": keep_going, "--fetch": fetch, "--quiet": quiet}
    options = {"--out": out, "--only": only, "--limit": limit, "--device": device, "--workers": workers}
    options |= {"--methods": methods, "--against": against}
    words = [word for name, value in options.items() if value is not None for word in (name, str(value))]
    words += [name for name, given in flags.items() if argument(name[2:].replace("-", "_"), given, bool)]
    args = argparse.Namespace(
        suite=Path(suite),
        out=Path(out),
        own=None if methods is None else Path(methods),
        against=None if against is None else str(against),
        only=None if only is None else [only],
        limit=limit,
        shard=None,
        dry_run=False,
        fetch=fetch,
        quiet=quiet,
        device=device,
        workers=workers,
        executor="local",
        scheduler=None,
        stack=None,
        timeout=None,
        keep_going=keep_going,
        words=["run", str(suite), *words],
    )
    command(args)
    return load_results(args.out / load_suite(args.suite, discover(), args.own).name)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds its arguments."""
    add = parser.add_argument
    add_suite_argument(parser)
    add("--out", type=Path, default=Path("results"), metavar="DIR", help="parent of the result folder (results)")
    add_options(parser)
    what = "train the methods of this file, such as mine.yaml, instead of the suite's; all else is the suite's"
    add("--methods", type=Path, dest="own", metavar="FILE", help=what)
    add_shared(parser, "--against")
    what = "a part of the suite, such as method=DARN|MDAN,target=books,seed=0-4; given again, it adds conditions"
    add("--only", metavar="SELECTION", action="append", help=what)
    add(
        "--limit",
        type=whole_number,
        metavar="N",
        help="train at most N cells; cells beyond the limit do not affect the exit code",
    )
    add(
        "--shard",
        metavar="I/N",
        help="part I of N, counted from 0, for machines that share the work, such as array jobs",
    )
    add("--keep-going", action="store_true", help="train the other cells although a method's first one fails")
    add("--dry-run", action="store_true", help="report what is stored and what would be trained, and change nothing")
    add("--fetch", action="store_true", help="download missing data")
    what = "print no progress, no verdict and no explanation of the tables; warnings and problems are still shown"
    add("--quiet", action="store_true", help=what)
    if isinstance(parser, Parser):
        parser.elsewhere = {f"--{key}s": f"--only {key}={value}" for key, value in _PARTS.items()}


def command(args: argparse.Namespace) -> int:
    """Trains what is missing and prints the leaderboard."""
    from rich.console import Console

    aside = Console(stderr=True, soft_wrap=True, quiet=args.quiet)
    with aside.status("loading the suite and its components") if aside.is_terminal else contextlib.nullcontext():
        from msda_bench.running.execute import Interrupt

        work = load_work(args)
    with Interrupt(signal.SIGTERM) as stop, stop.raising():
        return _run_suite(args, work, aside)


def _run_suite(args: argparse.Namespace, work: Work, aside: Console) -> int:
    from msda_bench.results.files import refuse_result_folders
    from msda_bench.running.runner import survey
    from msda_bench.store import Store

    plan, reference = work.expansion.plan, _reference(args, work.expansion)
    folder = args.out / plan.suite
    refuse_result_folders(args.out)
    store = Store.find(folder)
    stages = _Stages(plan, _chosen(args, plan))
    if args.dry_run:
        surveyed = survey(work.expansion, store, stages.first + stages.rest(store), args.limit)
        show(args, survey_report(surveyed, folder, stages.waiting))
        return 0
    surveyed = survey(work.expansion, store, stages.first, args.limit)
    store, summary = train(args, work, surveyed, store, aside)
    if stages.tunes and not summary.interrupted:
        limit = None if args.limit is None else args.limit - len(surveyed.missing)
        surveyed = survey(work.expansion, store, stages.rest(store), limit)
        aside.print(f"{folder}: {stages.describe(len(surveyed.missing))}", markup=False, highlight=False)
        store, later = train(args, work, surveyed, store, aside)
        summary = stages.summary(later.after(summary))
        warn_of(f"{folder}: {line}" for line in stages.gaps())
    return conclude(args, summary, store, plan, reference)


class _Stages:
    """The selected cells of a plan; those that are trained first are all, unless settings are chosen on tuning seeds.

    Attributes:
        first: the cells on tuning seeds, or all cells.
        tunes: whether there are others.
        waiting: how many selected runs wait for tuning cells.
    """

    def __init__(self, plan: Plan, selected: tuple[PlannedCell, ...]) -> None:
        self._plan, self._selected = plan, selected
        self._tuning = {table.name: table.tuning for table in plan.experiments if table.tuning is not None}
        self.tunes = bool(self._tuning)
        self.first = tuple(filter(self._is_tuning, selected)) if self.tunes else selected
        self.waiting = self._stuck = self._planned = self._chosen = 0

    def rest(self, store: Store | None) -> tuple[PlannedCell, ...]:
        """The other cells, as far as the records of the first have chosen them."""
        if not self.tunes:
            return ()
        from msda_bench.results.frame import tuned

        choices = tuned(self._plan, store)
        unfinished, without = choices.without(unfinished=True), choices.without(unfinished=False)
        others = [cell for cell in self._selected if not self._is_tuning(cell)]
        runs = {(cell.experiment, cell.method, cell.target, cell.seed) for cell in others}
        self.waiting = sum(run[:3] in unfinished for run in runs)
        self._stuck = sum(run[:3] in without for run in runs)
        self._chosen = len(choices.numbers) - len(unfinished | without)
        wanted = {
            cell
            for cell in self._plan.cells
            if not self._is_tuning(cell)
            and (
                cell.experiment not in self._tuning
                or cell.candidate in choices.numbers[cell.experiment, cell.method, cell.target]
            )
        }
        self._planned = len({cell.key for cell in self._plan.cells if cell in wanted or self._is_tuning(cell)})
        return tuple(cell for cell in others if cell in wanted)

    def describe(self, missing: int) -> str:
        """One line on what was chosen."""
        tracks = dict.fromkeys(by for tuning in self._tuning.values() for by in tuning.tracks)
        where = f"for {self._chosen} pairs of method and target"
        left = f"{counted(missing, 'cell')} of theirs to train"
        return f"settings chosen on tuning seeds ({', '.join(tracks)}) {where}; {left}"

    def summary(self, summary: Summary) -> Summary:
        """The outcome of both parts, of all cells that are planned as far as is known."""
        return replace(summary, planned=self._planned, stuck=self._stuck)

    def gaps(self) -> Iterator[str]:
        """A line for runs that wait, and one for those without any candidate to choose."""
        if self.waiting:
            waiting = counted(self.waiting, "run")
            yield f"{waiting} must wait for tuning cells without a result; train these, then run again"
        if self._stuck:
            yield f"{counted(self._stuck, 'run')} cannot train, since no candidate has a score on the tuning seeds"

    def _is_tuning(self, cell: PlannedCell) -> bool:
        return cell.experiment in self._tuning and cell.seed in self._tuning[cell.experiment].seeds


class Work(NamedTuple):
    """A suite's tables and cells, and whatever trains them."""

    expansion: Expansion
    registry: Registry
    trains: type[Executor]


def load_work(args: argparse.Namespace) -> Work:
    """Expands `args.suite`, with the methods of `args.own` if given, after warnings; sets `args.fetch` if it does."""
    from msda_bench.plugins import discover
    from msda_bench.suite.expand import expand
    from msda_bench.suite.load import load_suite

    trains = find_executor(args)
    registry = discover()
    warn_of(registry.problems)
    suite = load_suite(args.suite, registry, args.own)
    expansion = expand(suite, registry)
    warn_of(expansion.warnings)
    args.fetch = args.fetch or suite.fetch
    return Work(expansion, registry, trains)


def train(
    args: argparse.Namespace, work: Work, surveyed: Survey, store: Store | None, aside: Console
) -> tuple[Store, Summary]:
    """Trains what a survey misses into the suite's folder below `args.out`."""
    from msda_bench.running.data import check_sizes, ensure_data
    from msda_bench.running.runner import run_suite
    from msda_bench.store import Store

    def report(line: str) -> None:
        aside.print(printable(line, LONGEST_LINE), markup=False, highlight=False)

    expansion, registry, trains = work
    device = find_device(args)
    if device == "cpu" and args.stack is not None:
        raise BenchError("--stack is for a GPU; on the CPU every cell trains alone, which is faster there")
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
    together = cells_of_a_job(executor, len(surveyed.missing))
    summary = run_suite(surveyed, store, executor, _observer(executor, aside), together, keep_going=args.keep_going)
    for note in summary.notes if args.quiet else ():
        warn(note)
    return store, summary


def _reference(args: argparse.Namespace, expansion: Expansion) -> Reference | None:
    """The reference of `--against`; refuses a suite of another protocol before anything is trained."""
    if args.against is None:
        return None
    from msda_bench.results.reference import deviations, read_reference

    reference, cells = read_reference(args.against), expansion.cells
    places = ((cell.experiment, cells[cell.key].to_json()) for cell in expansion.plan.cells)
    if lines := [*deviations(reference, expansion.plan, places)]:
        raise BenchError(*lines)
    return reference


def _without_arrays(store: Store, expansion: Expansion, surveyed: Survey) -> Iterator[str]:
    """A line for each kind of array that the suite keeps but stored results do not have."""
    from msda_bench.store.arrays import KINDS

    there = store.arrays.names()
    for name in KINDS:
        asked = [
            key for key, event in surveyed.ended.items() if event.status == "ok" and name in expansion.cells[key].keep
        ]
        without = len(asked) - sum(store.results[key].arrays.get(name) in there for key in asked)
        if without:
            yield (
                f"{store.folder}: {without} stored runs have no {name}, which only training makes; to train them "
                "again, run with another --out"
            )


def _chosen(args: argparse.Namespace, plan: Plan) -> tuple[PlannedCell, ...]:
    from msda_bench.running.runner import shard_of
    from msda_bench.suite.select import select_cells

    chosen = plan.cells if args.only is None else select_cells(plan, ",".join(args.only))
    return chosen if args.shard is None else shard_of(chosen, args.shard)


def _observer(executor: Executor, aside: Console) -> Observer:
    from msda_bench.running.progress import LiveProgress, PlainProgress

    # Redrawing a progress bar would hide a debugger's prompt.
    plain = not (executor.has_processes and aside.is_terminal)
    return PlainProgress(aside) if plain else LiveProgress(aside)


def _keep_plan(store: Store, plan: Plan) -> None:
    from msda_bench.store.store import DamagedPlanError

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
        warn(f"{store.folder}: the suite has changed; {beyond} stored cells are no longer in it and stay unused")


def _begin(args: argparse.Namespace, store: Store, device: str, cells: Iterable[Cell]) -> None:
    """Prepares training: refuses settings that need a GPU, keeps the command, warns if numba is missing."""
    from msda_bench.engine.machine import can_compile

    if device == "cpu" and any(cell.training.precision == "tf32" for cell in cells):
        raise BenchError("the suite asks for precision tf32, which only a GPU has; on the CPU use float32 or bf16")
    store.add_commands([shlex.join(["msda-bench", *args.words])])
    if not can_compile():
        warn("numba cannot be used here: runs on the CPU take the slower plain loops, which round differently")
