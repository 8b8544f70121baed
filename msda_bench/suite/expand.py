"""From a suite to its cells: every method on every target with every seed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from msda_bench.errors import SuiteError
from msda_bench.plugins import Registry
from msda_bench.suite.baseline import baseline_of
from msda_bench.suite.cell import Cell, Ref, Training
from msda_bench.suite.check import DEFAULT_VALIDATOR, kept_sources
from msda_bench.suite.choice import Choice, make
from msda_bench.suite.load import Suite
from msda_bench.suite.options import Options, method_options
from msda_bench.suite.plan import LEAVE_ONE_OUT, ORACLE, Experiment, Method, Plan, PlannedCell, Search
from msda_bench.suite.recipe import recipe
from msda_bench.suite.search import candidates_of, leaves_out, select_notes
from msda_bench.suite.search_paths import Parts
from msda_bench.suite.spec import ExperimentFile, MethodSpec, Protocol

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
    wanted = sum(_count(experiment) for experiment in suite.experiments)
    if wanted > MAX_CELLS:
        raise SuiteError(f"suite {suite.name} asks for {wanted} cells; at most {MAX_CELLS}, so split it")
    cells: dict[str, Cell] = {}
    planned: list[PlannedCell] = []
    for experiment in suite.experiments:
        for place, cell in _cells(experiment, registry):
            cells.setdefault(place.key, cell)
            planned.append(place)
    tables = tuple(map(_table, suite.experiments))
    warnings = tuple(line for experiment in suite.experiments for line in _large_batches(experiment))
    return Expansion(Plan(suite.name, tables, tuple(planned)), cells, warnings)


def targets_of(experiment: ExperimentFile) -> tuple[str, ...]:
    """Its targets in the suite's order, or all of the dataset's."""
    return tuple(experiment.targets or experiment.dataset.component.targets)


def _large_batches(experiment: ExperimentFile) -> Iterator[str]:
    train = experiment.dataset.component.train
    found = [parts.training.batch for name in experiment.methods for parts in candidates_of(experiment, name).parts]
    for batch in sorted({size for size in found if isinstance(size, int) and size > train}):
        yield (
            f"{experiment.name}: training.batch is {batch}, but a domain has {train} training examples (train: {train} "
            f"of dataset {experiment.dataset.name}), so every step draws some of them more than once"
        )


def _count(experiment: ExperimentFile) -> int:
    targets = targets_of(experiment)
    left_out = sum(len(_sources(experiment, target)) for target in targets)
    found = [candidates_of(experiment, name) for name in experiment.methods]
    runs = sum(len(one.parts) * (len(targets) + left_out * one.leaves_out) for one in found)
    return runs * len(experiment.seeds)


def _table(experiment: ExperimentFile) -> Experiment:
    searches = {name: candidates_of(experiment, name).search for name in experiment.methods}
    return Experiment(
        name=experiment.name,
        dataset=experiment.dataset.name,
        task=experiment.dataset.component.task.kind,
        targets=targets_of(experiment),
        methods=tuple(_row(name, experiment, searches[name]) for name in experiment.methods),
        seeds=experiment.seeds,
        alpha=experiment.compare.alpha,
        notes=(
            *experiment.notes,
            *_label_notes(experiment),
            *_select_notes(experiment, searches),
            *experiment.dataset.component.notes,
        ),
        baseline=baseline_of(experiment.methods, experiment.compare.baseline),
        against=experiment.compare.against,
        published=experiment.published,
        criteria=_criteria(experiment),
    )


def _options(experiment: ExperimentFile, method: MethodSpec) -> Options:
    return method_options(method, experiment.split_sources, experiment.labelled_target)


def _label_notes(experiment: ExperimentFile) -> Iterator[str]:
    """What a reader must know of methods that see some of the target's labels, beside the oracle."""
    seen: dict[int, list[str]] = {}
    for name, method in experiment.methods.items():
        seen.setdefault(_options(experiment, method).labelled_target, []).append(name)
    for count, names in sorted(seen.items()):
        if count:
            yield f"Trained with {count} labelled examples of the target: {', '.join(names)}."


def _select_notes(experiment: ExperimentFile, searches: Mapping[str, Search | None]) -> Iterator[str]:
    if experiment.select is not None:
        found = {name: search for name, search in searches.items() if search is not None}
        yield from select_notes(experiment.select, found)


def _criteria(experiment: ExperimentFile) -> tuple[str, ...]:
    if experiment.select is None:
        return ()
    left_out = (LEAVE_ONE_OUT,) if leaves_out(experiment.select) else ()
    return (*_validator_names(experiment), *left_out, ORACLE)


def _row(name: str, experiment: ExperimentFile, search: Search | None) -> Method:
    method = experiment.methods[name]
    choices = (method.scheme, method.discrepancy, method.aggregator)
    origins = dict.fromkeys(choice.entry.origin for choice in choices if choice is not None)
    return Method(name, method.reference, recipe(method, _options(experiment, method), search), tuple(origins), search)


def _cells(experiment: ExperimentFile, registry: Registry) -> Iterator[tuple[PlannedCell, Cell]]:
    for name in experiment.methods:
        found = candidates_of(experiment, name)
        drafts = [_draft(experiment, parts, registry) for parts in found.parts]
        for target, seed, (index, draft) in product(targets_of(experiment), experiment.seeds, enumerate(drafts)):
            candidate = index if found.search is not None else None
            for left_out, cell in _trials(replace(draft, seed=seed), target, experiment, all_out=found.leaves_out):
                yield PlannedCell(experiment.name, name, target, seed, cell.key, candidate, left_out), cell


def _trials(
    draft: Cell, target: str, experiment: ExperimentFile, *, all_out: bool
) -> Iterator[tuple[str | None, Cell]]:
    """The run at the target; then, if need be, one for each source as the target of the others."""
    sources = _sources(experiment, target)
    yield None, replace(draft, target=target, sources=sources)
    for source in sources if all_out else ():
        others = tuple(other for other in sources if other != source)
        yield source, replace(draft, target=source, sources=others)


def _sources(experiment: ExperimentFile, target: str) -> tuple[str, ...]:
    return kept_sources(experiment.dataset.component, target, experiment.sources)


def _draft(experiment: ExperimentFile, parts: Parts, registry: Registry) -> Cell:
    method = parts.method
    options = _options(experiment, method)
    return Cell(
        dataset=experiment.dataset.ref,
        fingerprint=experiment.dataset.component.fingerprint(),
        target="",
        sources=(),
        backbone=parts.backbone.ref,
        scheme=method.scheme.ref,
        discrepancy=_ref(method.discrepancy),
        aggregator=_ref(method.aggregator),
        mu=method.mu,
        training=_training(parts.training),
        validators=_validators(experiment, registry),
        seed=0,
        split_sources=options.split_sources,
        labelled_target=options.labelled_target,
    )


def _ref(choice: Choice[Any] | None) -> Ref | None:
    return choice.ref if choice is not None else None


def _training(protocol: Protocol) -> Training:
    optimizer = protocol.optimizer
    return Training(
        protocol.epochs, protocol.batch, optimizer.name, optimizer.params, protocol.steps, protocol.precision
    )


def _validators(experiment: ExperimentFile, registry: Registry) -> tuple[Ref, ...]:
    if experiment.validators is not None:
        return tuple(choice.ref for choice in experiment.validators)
    (default,) = _validator_names(experiment)
    return (make(registry, "validator", default, {}).ref,)


def _validator_names(experiment: ExperimentFile) -> tuple[str, ...]:
    if experiment.validators is not None:
        return tuple(choice.name for choice in experiment.validators)
    return (DEFAULT_VALIDATOR[experiment.dataset.component.task.kind],)
