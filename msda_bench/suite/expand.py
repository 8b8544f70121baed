"""From a suite to its cells: every method on every target with every seed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from msda_bench.errors import SuiteError
from msda_bench.plugins import Registry
from msda_bench.suite.cell import Cell, Ref, Training
from msda_bench.suite.choice import make
from msda_bench.suite.load import Suite
from msda_bench.suite.method import SourceOptions, baseline_of, recipe, source_options
from msda_bench.suite.plan import LEAVE_ONE_OUT, ORACLE, Experiment, Method, Plan, PlannedCell
from msda_bench.suite.search import Candidates, Settings, candidates_of, leaves_out, select_notes
from msda_bench.suite.sources import kept_sources
from msda_bench.suite.spec import DEFAULT_VALIDATOR, ExperimentFile, MethodSpec

MAX_CELLS = 100_000


@dataclass(frozen=True)
class Expansion:
    """What a suite asks for.

    Attributes:
        plan: the tables.
        cells: the runs by key, in the plan's order; fewer than the plan's where two methods have the same settings.
        warnings: lines on what can be trained but is hardly meant.
    """

    plan: Plan
    cells: dict[str, Cell]
    warnings: tuple[str, ...] = ()


def expand(suite: Suite, registry: Registry) -> Expansion:
    """All tables and cells of a suite.

    Raises:
        SuiteError: it asks for more than 100,000 cells.
        PluginError: the default validator is not installed.
    """
    drafts = [_Draft(experiment) for experiment in suite.experiments]
    wanted = sum(draft.count() for draft in drafts)
    if wanted > MAX_CELLS:
        raise SuiteError(f"suite {suite.name} asks for {wanted} cells; at most {MAX_CELLS}, so split it")
    cells: dict[str, Cell] = {}
    planned: list[PlannedCell] = []
    for draft in drafts:
        for place, cell in draft.cells(registry):
            cells.setdefault(place.key, cell)
            planned.append(place)
    tables = tuple(draft.table() for draft in drafts)
    warnings = tuple(line for draft in drafts for line in draft.large_batches())
    return Expansion(Plan(suite.name, tables, tuple(planned)), cells, warnings)


class _Draft:
    """One experiment with what its parts amount to."""

    def __init__(self, experiment: ExperimentFile) -> None:
        self._file = experiment
        self._dataset = experiment.dataset.component
        self._candidates: dict[str, Candidates] = {name: candidates_of(experiment, name) for name in experiment.methods}
        self._targets = tuple(experiment.targets or self._dataset.targets)
        listed = experiment.validators
        default = DEFAULT_VALIDATOR[self._dataset.task.kind]
        self._validators = (default,) if listed is None else tuple(one.name for one in listed)

    def count(self) -> int:
        """Cells, before any is made."""
        left_out = sum(len(self._sources(target)) for target in self._targets)
        tried = self._candidates.values()
        runs = sum(len(one.settings) * (len(self._targets) + left_out * one.leaves_out) for one in tried)
        return runs * len(self._file.seeds)

    def cells(self, registry: Registry) -> Iterator[tuple[PlannedCell, Cell]]:
        """Every run, with its place in the table."""
        file, listed = self._file, self._file.validators
        validators = (
            tuple(make(registry, "validator", name, {}).ref for name in self._validators)
            if listed is None
            else tuple(one.ref for one in listed)
        )
        for name, found in self._candidates.items():
            tried = [self._cell(settings, validators) for settings in found.settings]
            for target, seed, (index, cell) in product(self._targets, file.seeds, enumerate(tried)):
                candidate = index if found.search is not None else None
                for left_out, run in self._runs(replace(cell, seed=seed), target, all_out=found.leaves_out):
                    yield PlannedCell(file.name, name, target, seed, run.key, candidate, left_out), run

    def table(self) -> Experiment:
        """The plan's part of it."""
        file, select = self._file, self._file.select
        criteria: tuple[str, ...] = ()
        if select is not None:
            criteria = (*self._validators, *((LEAVE_ONE_OUT,) if leaves_out(select) else ()), ORACLE)
        return Experiment(
            name=file.name,
            dataset=file.dataset.name,
            task=self._dataset.task.kind,
            targets=self._targets,
            methods=tuple(map(self._row, file.methods)),
            seeds=file.seeds,
            alpha=file.compare.alpha,
            notes=(*file.notes, *self._notes(), *self._dataset.notes),
            baseline=baseline_of(file.methods, file.compare.baseline),
            against=file.compare.against,
            published=file.published,
            criteria=criteria,
        )

    def large_batches(self) -> Iterator[str]:
        """Warnings of batches that hold more examples than there are."""
        train, name = self._dataset.train, self._file.name
        batches = {one.training.batch for found in self._candidates.values() for one in found.settings}
        for batch in sorted(size for size in batches if isinstance(size, int) and size > train):
            yield (
                f"{name}: training.batch is {batch}, but a domain has {train} training examples (train: {train} "
                f"of dataset {self._file.dataset.name}), so every step draws some of them more than once"
            )

    def _notes(self) -> Iterator[str]:
        """What a reader must know of methods that see some of the target's labels, and of the selection."""
        seen: dict[int, list[str]] = {}
        for name, method in self._file.methods.items():
            seen.setdefault(self._options(method).labelled_target, []).append(name)
        for count, names in sorted(seen.items()):
            if count:
                yield f"Trained with {count} labelled examples of the target: {', '.join(names)}."
        if self._file.select is not None:
            searches = {name: found.search for name, found in self._candidates.items() if found.search is not None}
            yield from select_notes(self._file.select, searches)

    def _row(self, name: str) -> Method:
        method, search = self._file.methods[name], self._candidates[name].search
        components = (method.scheme, method.discrepancy, method.aggregator)
        origins = dict.fromkeys(one.entry.origin for one in components if one is not None)
        text = recipe(method, self._options(method), search)
        return Method(name, method.reference, text, tuple(origins), search)

    def _runs(self, cell: Cell, target: str, *, all_out: bool) -> Iterator[tuple[str | None, Cell]]:
        """The run at the target; then, if need be, one for each source as the target of the others."""
        sources = self._sources(target)
        yield None, replace(cell, target=target, sources=sources)
        for source in sources if all_out else ():
            others = tuple(other for other in sources if other != source)
            yield source, replace(cell, target=source, sources=others)

    def _cell(self, settings: Settings, validators: tuple[Ref, ...]) -> Cell:
        """The cell of all targets and seeds."""
        method, protocol = settings.method, settings.training
        optimizer, options = protocol.optimizer, self._options(method)
        return Cell(
            dataset=self._file.dataset.ref,
            fingerprint=self._dataset.fingerprint(),
            target="",
            sources=(),
            backbone=settings.backbone.ref,
            scheme=method.scheme.ref,
            discrepancy=method.discrepancy.ref if method.discrepancy else None,
            aggregator=method.aggregator.ref if method.aggregator else None,
            mu=method.mu,
            training=Training(
                protocol.epochs, protocol.batch, optimizer.name, optimizer.params, protocol.steps, protocol.precision
            ),
            validators=validators,
            seed=0,
            split_sources=options.split_sources,
            labelled_target=options.labelled_target,
        )

    def _options(self, method: MethodSpec) -> SourceOptions:
        return source_options(method, self._file.split_sources, self._file.labelled_target)

    def _sources(self, target: str) -> tuple[str, ...]:
        return kept_sources(self._dataset.sources(target), self._file.sources)
