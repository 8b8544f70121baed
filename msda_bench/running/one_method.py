"""Finds and checks one method of a suite, with its settings, and trains it on all labelled rows."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from msda_bench.api import Array, DomainData, NewRows, NewRowsReader
from msda_bench.data import LocalFiles
from msda_bench.engine.final import train_final
from msda_bench.errors import BenchError
from msda_bench.plugin_errors import packages_of, plugin_errors
from msda_bench.plugins import discover
from msda_bench.results.doubtful_predictions import doubts_of
from msda_bench.results.frame import read_runs
from msda_bench.results.model_selection import Candidates
from msda_bench.results.runs import results_of
from msda_bench.results.words import counted
from msda_bench.running.data import ensure_data
from msda_bench.running.final import FEW, FittedMethod, doubts_about
from msda_bench.running.resources import find_device
from msda_bench.running.training import refuse_untrusted_files
from msda_bench.store import Store
from msda_bench.suite.described import OwnMethods
from msda_bench.suite.expand import Expansion, expand
from msda_bench.suite.issues import hint
from msda_bench.suite.load import Suite, load_suite
from msda_bench.suite.plan import Experiment, Method
from msda_bench.suite.resolved import ResolvedExperiment
from msda_bench.suite.run_spec import RunSpec, canonical_json
from msda_bench.suite.search import candidates_of


@dataclass(frozen=True, kw_only=True)
class FitOptions:
    """The method to train, and how.

    Attributes:
        suite: a suite by name, or a file.
        method: one of its methods.
        results: the parent of the suite's result folder, from which selected settings are read.
        seed: of all draws; None for the suite's first.
        device: auto, cpu or cuda.
        fetch: whether missing data may be downloaded.
        trust_files: whether the code of Python files that the suite names may run.
        estimators: estimators of this Python session, beside the suite's methods.
        quiet: whether no progress is shown.
    """

    suite: Path
    method: str
    results: Path = Path("results")
    seed: int | None = None
    device: str = "auto"
    fetch: bool = False
    trust_files: bool = False
    estimators: OwnMethods | None = None
    quiet: bool = False


class OneMethod:
    """One method of a suite, ready to be trained.

    Attributes:
        name: its name in the suite.
        reader: what reads new files for it.
        sees_target: whether the method, or what makes rows numbers, looks at the target's rows.

    Raises:
        BenchError: the suite, the method or the data cannot be used.
    """

    def __init__(self, options: FitOptions, report: Callable[[str], None], warn: Callable[[str], None]) -> None:
        self._registry = discover()
        for line in self._registry.problems:
            warn(line)
        suite = load_suite(options.suite, self._registry, None, options.estimators)
        expansion = expand(suite, self._registry)
        experiment, table, method = _find(options, suite, expansion)
        self.name = options.method
        self._report = (lambda _: None) if options.quiet else report
        self._device = find_device(options.device)
        candidate = _selected(options, expansion, table, method, self._report, warn)
        place = table.name, method.name, candidate
        planned = next(run for run in expansion.plan.cells if (run.experiment, run.method, run.candidate) == place)
        cell = expansion.cells[planned.key]
        refuse_untrusted_files(options.suite, [cell], trusted=options.trust_files)
        self._cell = replace(
            cell,
            target="",
            sources=_labelled(experiment),
            seed=table.seeds[0] if options.seed is None else options.seed,
            validators=(),
            metrics=None,
            keep=(),
        )
        _refuse(options.method, self._cell, experiment)
        fetch = options.fetch or suite.fetch
        ensure_data([self._cell], self._registry, self._report, fetch=fetch, device=self._device)
        self.reader = _reader(options.suite, experiment)
        _, settings = candidates_of(experiment.file, self.name)
        self.sees_target = settings[candidate or 0].method.sees_target or self.reader.sees_target
        self._labels: Array | None = None

    def fit(self, target: str | None, rows: DomainData | None) -> FittedMethod:
        """The method, trained on all labelled rows and on the unlabelled ones of a target.

        Raises:
            BenchError: training diverged, or a component breaks its contract.
        """
        name = "new" if target is None else target
        cell = replace(self._cell, target=f"{name} (new)" if name in self._cell.sources else name)
        packages = packages_of(spec.distribution for spec in cell.components)
        with plugin_errors(packages, self.name, (MemoryError,)):
            files = LocalFiles(dataset=cell.dataset.name)
            trained = train_final(cell, self._registry, files, rows, self._device)
        self._labels = trained.labels
        to = "" if rows is None else f", for {counted(len(rows.y), 'row')} of {target}"
        of = f"{counted(trained.rows, 'row')} of {counted(len(cell.sources), 'domain')}"
        self._report(f"{self.name}: trained on {of}{to}")
        learned = trained.model.features
        reader = self.reader if learned is None else self.reader.stored(learned.features)
        return FittedMethod(self.name, target, trained.weights, reader, trained.model, self._device)

    def doubts_about(self, rows: NewRows) -> tuple[str, ...]:
        """The warnings about new rows that apply to the method."""
        return doubts_about(rows, self._cell)

    def doubts(self, target: str, outputs: Array) -> list[str]:
        """A line if the predictions for a target differ widely from the labels in training; none for a few rows."""
        if len(outputs) < FEW or self._labels is None:
            return []
        return doubts_of(target, self.name, outputs, self._labels, self.reader.classes)


def _reader(suite: Path, experiment: ResolvedExperiment) -> NewRowsReader:
    data = experiment.data
    with experiment.file.dataset.entry.plugin_errors("cannot be read"):
        reader = data.new_rows_reader(LocalFiles(dataset=data.name))
    if reader is None:
        known = "a table, arrays or images of your own"
        raise BenchError(f"{suite}: dataset {data.name} reads no new files; predict is for {known}")
    return reader


def _find(options: FitOptions, suite: Suite, expansion: Expansion) -> tuple[ResolvedExperiment, Experiment, Method]:
    """The method, and the experiment that has it."""
    found = []
    known: dict[str, None] = {}
    for experiment, table in zip(suite.experiments, expansion.plan.experiments, strict=True):
        if experiment.without is not None:
            continue
        for method in table.methods:
            known[method.name] = None
            if method.name == options.method:
                found.append((experiment, table, method))
    if not found:
        raise BenchError(f"{options.suite}: no method {options.method!r}{hint(options.method, known)}")
    if len(found) > 1:
        names = ", ".join(table.name for _, table, _ in found)
        raise BenchError(f"{options.suite}: {options.method} is in {names}; give the file of one of these suites")
    return found[0]


def _labelled(experiment: ResolvedExperiment) -> tuple[str, ...]:
    """The suite's source domains that have labels."""
    wanted = experiment.domains if experiment.file.sources is None else experiment.file.sources
    without = experiment.data.unlabelled_domains
    return tuple(name for name in experiment.domains if name in wanted and name not in without)


def _selected(
    options: FitOptions,
    expansion: Expansion,
    table: Experiment,
    method: Method,
    report: Callable[[str], None],
    warn: Callable[[str], None],
) -> int | None:
    """The candidate that was selected most often, over targets and seeds; of several the first; None without a search.

    Raises:
        BenchError: no results select one.
    """
    search = method.search
    if search is None:
        return None
    if len(search.candidates) == 1:
        return 0
    folder = options.results / expansion.plan.suite
    store, remedy = Store.find(folder), f"`{shlex.join(['msda-bench', 'run', str(options.suite)])}`"
    if store is None:
        what = f"the suite selects the settings of {method.name} by its results, and {folder} has none"
        raise BenchError(f"{what}; run {remedy} first, or name their parent with --results")
    runs = read_runs(store, expansion.plan)
    scored = next(one for one in results_of(runs).plan.experiments if one.name == table.name)
    choices = list(Candidates(runs).choices(scored, method))
    votes = Counter(choice.number for choice in choices if choice.number is not None)
    if not votes:
        raise BenchError(f"{folder}: has no run that selects settings of {method.name} by {search.by}; run {remedy}")
    if lacking := len(choices) - votes.total():
        warn(f"{folder}: {lacking} of {len(choices)} runs of {method.name} have not selected settings yet")
    number = max(votes, key=lambda number: (votes[number], -number))
    values = ", ".join(f"{path} {canonical_json(value)}" for path, value in search.candidates[number].items())
    report(f"{method.name}: {values}; selected in {votes[number]} of {len(choices)} ({choices[0].by})")
    return number


def _refuse(name: str, cell: RunSpec, experiment: ResolvedExperiment) -> None:
    """Refuses methods that cannot predict a new domain, or should not.

    Raises:
        BenchError: one line says why.
    """
    scheme = experiment.file.methods[name].scheme.component
    if scheme.needs_target_labels or cell.labelled_target:
        raise BenchError(f"{name}: learns from labels of the target, which new rows do not have; name another method")
    if scheme.uses_predictions:
        raise BenchError(f"{name}: is another model's predictions, which new rows do not have; name another method")
    for key in ("corrupt", "label_shift"):
        if getattr(experiment.data, key) is not None:
            raise BenchError(f"{name}: the suite changes labels (`{key}`), which no model to use should learn from")
