"""One method of a suite, found, checked and with its settings, to be trained on all labelled rows."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from msda_bench.api import Array, DomainData, GivenScheme, NewRows, NewRowsReader
from msda_bench.blame import blaming, packages_of
from msda_bench.cli.lines import warn, warn_of
from msda_bench.cli.train import ask_trust, find_device
from msda_bench.data import LocalFiles
from msda_bench.engine.final import train_final
from msda_bench.engine.model import Components
from msda_bench.errors import LONGEST_LINE, BenchError, printable
from msda_bench.plugins import Registry, discover
from msda_bench.results.answered import doubts_of
from msda_bench.results.frame import read_runs
from msda_bench.results.runs import results_of
from msda_bench.results.select import Candidates
from msda_bench.results.words import counted
from msda_bench.running.data import ensure_data
from msda_bench.running.final import FEW, FittedMethod, doubts_about
from msda_bench.store import Store
from msda_bench.suite.described import OwnMethods
from msda_bench.suite.expand import Expansion, expand
from msda_bench.suite.issues import hint
from msda_bench.suite.load import Suite, load_suite
from msda_bench.suite.plan import Experiment, Method
from msda_bench.suite.resolved import ResolvedExperiment
from msda_bench.suite.run_spec import RunSpec, canonical_json


@dataclass(frozen=True)
class Wish:
    """What is to be trained, and how.

    Attributes:
        suite: a suite by name, or a file.
        method: one of its methods.
        results: the parent of the suite's result folder, from which selected settings are read.
        seed: of all draws; None for the suite's first.
        device: auto, cpu or cuda.
        fetch: whether missing data may be downloaded.
        trust_files: whether the code of Python files that the suite names may run.
        added: estimators of this Python session.
    """

    suite: Path
    method: str
    results: Path = Path("results")
    seed: int | None = None
    device: str = "auto"
    fetch: bool = False
    trust_files: bool = False
    added: OwnMethods | None = None


class OneMethod:
    """One method of a suite, ready to be trained.

    Attributes:
        name: its name in the suite.
        reader: what reads new files for it.
        sees_target: whether the method, or what makes rows numbers, looks at the target's rows.

    Raises:
        BenchError: the suite, the method or the data cannot be used.
    """

    def __init__(self, wish: Wish, *, quiet: bool = False) -> None:

        self._registry = discover()
        warn_of(self._registry.problems)
        suite = load_suite(wish.suite, self._registry, None, wish.added)
        expansion = expand(suite, self._registry)
        facts, table, method = _find(wish, suite, expansion)
        self.name = wish.method
        self._wish, self._quiet = wish, quiet
        self._device = find_device(wish.device)
        cell = _cell_of(wish, expansion, table, method, report=self._report)
        ask_trust(wish.suite, [cell], trusted=wish.trust_files)
        self._cell = replace(
            cell,
            target="",
            sources=_labelled(facts),
            seed=table.seeds[0] if wish.seed is None else wish.seed,
            validators=(),
            metrics=None,
            keep=(),
        )
        _refuse(wish.method, self._cell, facts)
        ensure_data([self._cell], self._registry, self._report, fetch=wish.fetch or suite.fetch, device=self._device)
        self.reader = self._reader(facts)
        self.sees_target = _sees_target(self._cell, self._registry) or self.reader.sees_target
        self._labels: Array | None = None

    def fit(self, target: str | None, rows: DomainData | None) -> FittedMethod:
        """The method, trained on all labelled rows and on the unlabelled ones of a target.

        Raises:
            BenchError: training diverged, or a component breaks its contract.
        """
        name = "new" if target is None else target
        cell = replace(self._cell, target=f"{name} (new)" if name in self._cell.sources else name)
        packages = packages_of(ref.distribution for ref in cell.refs)
        with blaming(packages, self._wish.method, (MemoryError,)):
            files = LocalFiles(dataset=cell.dataset.name)
            trained = train_final(cell, self._registry, files, rows, self._device)
        self._labels = trained.labels
        to = "" if rows is None else f", for {counted(len(rows.y), 'row')} of {target}"
        of = f"{counted(trained.rows, 'row')} of {counted(len(cell.sources), 'domain')}"
        self._report(f"{self._wish.method}: trained on {of}{to}")
        learned = trained.model.features
        reader = self.reader if learned is None else self.reader.stored(learned.features)
        return FittedMethod(self._wish.method, target, trained.weights, reader, trained.model, self._device)

    def doubts_about(self, rows: NewRows) -> tuple[str, ...]:
        """The lines on new rows that concern the method."""
        return doubts_about(rows, self._cell)

    def doubts(self, target: str, outputs: Array) -> list[str]:
        """How the answers for a target differ widely from the labels that were learned from; none on a few rows."""
        if len(outputs) < FEW or self._labels is None:
            return []
        return doubts_of(target, self._wish.method, outputs, self._labels, self.reader.classes)

    def _report(self, line: str) -> None:
        if not self._quiet:
            warn(printable(line, LONGEST_LINE))

    def _reader(self, facts: ResolvedExperiment) -> NewRowsReader:

        data = facts.data
        with facts.file.dataset.entry.blamed("cannot be read"):
            reader = data.new_rows_reader(LocalFiles(dataset=data.name))
        if reader is None:
            known = "a table, arrays or images of your own"
            raise BenchError(f"{self._wish.suite}: dataset {data.name} reads no new files; predict is for {known}")
        return reader


def _find(wish: Wish, suite: Suite, expansion: Expansion) -> tuple[ResolvedExperiment, Experiment, Method]:
    """The method, and the experiment that has it."""
    every = zip(suite.experiments, expansion.plan.experiments, strict=True)
    pairs = [(facts, table) for facts, table in every if facts.without is None]
    found = [(*pair, method) for pair in pairs for method in pair[1].methods if method.name == wish.method]
    if not found:
        known = dict.fromkeys(method.name for _, table in pairs for method in table.methods)
        raise BenchError(f"{wish.suite}: no method {wish.method!r}{hint(wish.method, known)}")
    if len(found) > 1:
        names = ", ".join(table.name for _, table, _ in found)
        raise BenchError(f"{wish.suite}: {wish.method} is in {names}; give the file of one of these suites")
    return found[0]


def _labelled(facts: ResolvedExperiment) -> tuple[str, ...]:
    """The domains that have labels, of those that the suite uses as sources."""
    wanted = facts.domains if facts.file.sources is None else facts.file.sources
    without = facts.data.unlabelled_domains
    return tuple(name for name in facts.domains if name in wanted and name not in without)


def _cell_of(
    wish: Wish, expansion: Expansion, table: Experiment, method: Method, *, report: Callable[[str], None]
) -> RunSpec:
    """A run of the method, with the settings that the suite gives or has selected."""
    number = None if method.search is None else _selected(wish, expansion, table, method, report=report)
    planned = next(
        cell
        for cell in expansion.plan.cells
        if (cell.experiment, cell.method, cell.candidate) == (table.name, method.name, number)
    )
    return expansion.cells[planned.key]


def _selected(
    wish: Wish, expansion: Expansion, table: Experiment, method: Method, *, report: Callable[[str], None]
) -> int:
    """The candidate that was selected most often, over targets and seeds; of several the first.

    Raises:
        BenchError: no results select one.
    """
    search = method.search
    assert search is not None  # noqa: S101 - asked before
    if len(search.candidates) == 1:
        return 0
    folder = wish.results / expansion.plan.suite
    store, remedy = Store.find(folder), f"`{shlex.join(['msda-bench', 'run', str(wish.suite)])}`"
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
        warn_of([f"{folder}: {lacking} of {len(choices)} runs of {method.name} have not selected settings yet"])
    number = max(votes, key=lambda number: (votes[number], -number))
    values = ", ".join(f"{path} {canonical_json(value)}" for path, value in search.candidates[number].items())
    report(f"{method.name}: {values}; selected in {votes[number]} of {len(choices)} ({choices[0].by})")
    return number


def _refuse(name: str, cell: RunSpec, facts: ResolvedExperiment) -> None:
    """Refuses what cannot predict a new domain, or should not.

    Raises:
        BenchError: one line says why.
    """
    scheme = facts.file.methods[name].scheme.component
    if scheme.needs_target_labels or cell.labelled_target:
        raise BenchError(f"{name}: learns from labels of the target, which new rows do not have; name another method")
    if isinstance(scheme, GivenScheme):
        raise BenchError(f"{name}: is another model's predictions, which new rows do not have; name another method")
    for key in ("corrupt", "label_shift"):
        if getattr(facts.data, key) is not None:
            raise BenchError(f"{name}: the suite changes labels (`{key}`), which no model to use should learn from")


def _sees_target(cell: RunSpec, registry: Registry) -> bool:
    """Whether a method looks at the unlabelled rows of the target."""
    components = Components.of(cell, registry)
    adapts = cell.standardise is not None or cell.prior_correction is not None
    return adapts or components.draws_target or components.scheme.target_statistics
