"""Trains the missing runs of a suite into its result folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from msda_bench.engine import machine
from msda_bench.errors import LONGEST_LINE, BenchError, printable
from msda_bench.plugins import Registry
from msda_bench.results.files import refuse_result_folders
from msda_bench.running.data import check_sizes, ensure_data
from msda_bench.running.execute import Executor
from msda_bench.running.forecast import forecast
from msda_bench.running.options import RunOptions
from msda_bench.running.other_project import data_changed
from msda_bench.running.progress import LiveProgress, PlainProgress
from msda_bench.running.resources import find_device, make_executor, runs_of_a_job
from msda_bench.running.runner import MissingRuns, Summary, missing_runs, run_suite, shard_of
from msda_bench.running.shift import pictures
from msda_bench.running.stages import TuningStages
from msda_bench.store import Store, arrays
from msda_bench.store.shift import read_shifts, write_shifts
from msda_bench.store.store import DamagedPlanError
from msda_bench.suite.expand import Expansion
from msda_bench.suite.own_estimator import OWN_SCHEME
from msda_bench.suite.plan import Plan
from msda_bench.suite.run_spec import RunSpec
from msda_bench.suite.subset import subset_of


@dataclass(frozen=True)
class Training:
    """A suite that is trained with some options.

    Attributes:
        options: the part of the suite to train, and how.
        expansion: the suite's plan and runs.
        registry: the installed components.
        executor: the class of the executor.
        console: where progress is shown.
        warn: gets each warning, a line.
    """

    options: RunOptions
    expansion: Expansion
    registry: Registry
    executor: type[Executor]
    console: Console
    warn: Callable[[str], None]

    @property
    def folder(self) -> Path:
        """The suite's result folder."""
        return self.options.out / self.expansion.plan.suite

    def find_store(self) -> Store | None:
        """The result folder if it exists; warns if its results are of other data.

        Raises:
            BenchError: the folder cannot hold results, or is damaged.
        """
        refuse_result_folders(self.options.out)
        store = Store.find(self.folder)
        if store is not None and data_changed(store, self.expansion.cells):
            what = f"the data have changed, so that this suite has none of the {len(store.results)} stored runs"
            self.warn(f"{self.folder}: {what}; if they are another project's, write another `name` into the suite")
        return store

    def stages(self) -> TuningStages:
        """The runs that the options select.

        Raises:
            BenchError: `only` or `shard` selects nothing that the suite has.
        """
        plan, options = self.expansion.plan, self.options
        selected = plan.cells
        if options.only:
            selected = subset_of(plan, ",".join(options.only))
        if options.shard is not None:
            selected = shard_of(selected, options.shard)
        return TuningStages(plan, selected)

    def train(self) -> tuple[Store, Summary]:
        """Trains the missing runs, in two stages if settings are chosen on tuning seeds.

        Raises:
            BenchError: the data, the device or the result folder cannot be used, or a method's first run fails.
        """
        store, stages, limit = self.find_store(), self.stages(), self.options.limit
        refuse_untrusted_files(self.options.suite, self.expansion.cells.values(), trusted=self.options.trust_files)
        missing = missing_runs(self.expansion, store, stages.first, limit)
        if line := forecast(self.options.suite, self.expansion, missing.to_train, store):
            self._say(line)
        store, summary = self._train_stage(missing, store)
        if stages.tunes and not summary.interrupted:
            left = None if limit is None else limit - len(missing.to_train)
            missing = missing_runs(self.expansion, store, stages.rest(store), left)
            self._say(f"{self.folder}: {stages.describe(len(missing.to_train))}")
            store, later = self._train_stage(missing, store)
            summary = replace(later.after(summary), planned=stages.planned, stuck=stages.stuck)
            for line in stages.gaps():
                self.warn(f"{self.folder}: {line}")
        if not summary.interrupted:
            self._keep_shifts()
        return store, summary

    def _say(self, line: str) -> None:
        self.console.print(printable(line, LONGEST_LINE), markup=False, highlight=False)

    def _train_stage(self, missing: MissingRuns, store: Store | None) -> tuple[Store, Summary]:
        options, runs = self.options, missing.to_train
        device = find_device(options.device) if options.scheduler is None else options.device
        if device == "cpu" and options.stack is not None:
            raise BenchError("--stack is for a GPU; on the CPU every run trains alone, which is faster there")
        if runs:
            check_sizes(runs.values(), self.registry)  # before the data are prepared, which may take long
            ensure_data(runs.values(), self.registry, self._say, fetch=options.fetch, device=device)
            check_sizes(runs.values(), self.registry)
        store = store or Store.create(self.folder)
        for line in _without_arrays(store, self.expansion, missing):
            self.warn(line)
        self._keep_plan(store)
        if runs:
            self._begin(store, device, runs.values())
        executor = make_executor(options, self.executor, device, self.warn)
        # Redrawing a progress bar would hide a debugger's prompt.
        is_live = executor.has_processes and self.console.is_terminal
        observer = LiveProgress(self.console) if is_live else PlainProgress(self.console)
        together = runs_of_a_job(executor, len(runs))
        summary = run_suite(missing, store, executor, observer, together, keep_going=options.keep_going)
        return store, summary

    def _keep_plan(self, store: Store) -> None:
        plan, former = self.expansion.plan, self._former_plan(store)
        if former == plan:
            return
        store.write_plan(plan)
        if former is None:
            return
        planned = {cell.key for cell in plan.cells}
        if beyond := len(store.refresh().results.keys() - planned):
            self.warn(
                f"{store.folder}: the suite has changed; {beyond} stored runs are no longer in it and stay unused"
            )

    def _former_plan(self, store: Store) -> Plan | None:
        if not store.has_plan():
            return None
        try:
            return store.read_plan()
        except DamagedPlanError as error:
            self.warn(str(error))
            return None

    def _begin(self, store: Store, device: str, cells: Iterable[RunSpec]) -> None:
        """Refuses settings that need a GPU, keeps the command, warns if numba is missing."""
        if device == "cpu" and any(cell.training.precision == "tf32" for cell in cells):
            raise BenchError("the suite asks for precision tf32, which only a GPU has; on the CPU use float32 or bf16")
        store.add_commands([self.options.command()])
        if not machine.can_compile():
            self.warn("numba cannot be used here: runs on the CPU take the slower plain loops, which round differently")

    def _keep_shifts(self) -> None:
        """Keeps how the inputs of the user's own data differ between domains, for the page."""
        options = self.options
        if options.no_shift or options.scheduler is not None:  # a cluster's data may be elsewhere
            return
        known = read_shifts(self.folder)
        made = dict(pictures(self.expansion, self.registry, known, find_device(options.device)))
        if made:
            write_shifts(self.folder, known | made)


def refuse_untrusted_files(suite: Path, cells: Iterable[RunSpec], *, trusted: bool) -> None:
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


def _without_arrays(store: Store, expansion: Expansion, missing: MissingRuns) -> Iterator[str]:
    """A line for each kind of array that the suite keeps but stored results do not have."""
    there = store.arrays.names()
    ok = [key for key, event in missing.ended.items() if event.status == "ok"]
    for name in arrays.KINDS:
        wanted = [key for key in ok if name in expansion.cells[key].keep]
        without = len(wanted) - sum(store.results[key].arrays.get(name) in there for key in wanted)
        if without:
            yield (
                f"{store.folder}: {without} stored runs have no {name}, which only training makes; to train them "
                "again, run with another --out"
            )
