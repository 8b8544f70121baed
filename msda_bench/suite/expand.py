"""Expands a suite into its cells, every method on every target with every seed, and describes it for its tables."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from msda_bench.api import Dataset, Predictor
from msda_bench.component.dataset import TARGET, corrupted_source
from msda_bench.component.sizes import is_transductive
from msda_bench.errors import SuiteError, printable
from msda_bench.plugins import Registry
from msda_bench.suite.choice import Configured, make, measure_of
from msda_bench.suite.load import Suite
from msda_bench.suite.plan import FIRST, ORACLE, Experiment, Method, Plan, PlannedRun, Search, Tuning
from msda_bench.suite.protocol import OneOf, SuitePart
from msda_bench.suite.resolved import ResolvedExperiment
from msda_bench.suite.run_spec import ComponentSpec, RunSpec, keys_of
from msda_bench.suite.search import Settings, candidates_of, select_notes, source_free_note
from msda_bench.suite.spec import DEFAULT_AGGREGATOR, MethodSpec

MAX_CELLS = 100_000
_LONGEST_VALUE = 100
_PLACES = 10
"""How many places a plan may have for each cell, where settings are chosen on tuning seeds."""
EQUAL_STEPS = (
    "Equal steps: every method, references too, takes as many in an epoch, each on a batch for each of its sources."
)
PROTOCOLS = {
    "held_out": "Held out: tested on examples of the target that no method trains on.",
    "transductive": (
        "Transductive: every method trains on all examples of the target, unlabelled, and is tested on the same ones."
    ),
}


@dataclass(frozen=True)
class Expansion:
    """The tables of a suite, and its runs by key, in the plan's order.

    There are fewer runs than planned cells if two methods have the same settings.
    `warnings` are lines on settings that train, but leave little to learn from.
    """

    plan: Plan
    cells: dict[str, RunSpec]
    warnings: tuple[str, ...]


def expand(suite: Suite, registry: Registry) -> Expansion:
    """All tables and cells of a suite.

    Raises:
        SuiteError: it asks for more than 100,000 cells.
        PluginError: the default validator is not installed.
    """
    drafts = [ExperimentPlanner(experiment) for experiment in suite.experiments]
    wanted = sum(draft.count() for draft in drafts)
    if wanted > MAX_CELLS:
        raise SuiteError(f"suite {suite.name} asks for {wanted} runs; at most {MAX_CELLS}, so split it")
    cells: dict[str, RunSpec] = {}
    planned: list[PlannedRun] = []
    for draft in drafts:
        for place, cell in draft.cells(registry):
            known = cells.setdefault(place.key, cell)
            if not set(cell.keep) <= set(known.keep):
                cells[place.key] = replace(known, keep=tuple(dict.fromkeys((*known.keep, *cell.keep))))
            planned.append(place)
    tables = tuple(draft.table() for draft in drafts)
    warnings = tuple(line for draft in drafts for line in draft.odd_batches())
    return Expansion(Plan(suite.name, tables, tuple(planned)), cells, warnings)


class ExperimentPlanner:
    """One experiment with its resolved parts."""

    def __init__(self, facts: ResolvedExperiment) -> None:
        self._facts, self._file = facts, facts.file
        self._tuning = self._file.select.seeds if self._file.select is not None else None
        self._seeds = (*(self._tuning or ()), *self._file.seeds)
        tried = {name: candidates_of(self._file, name) for name in self._file.methods}
        self._searches = {name: search for name, (search, _) in tried.items()}
        self._settings = {name: settings for name, (_, settings) in tried.items()}

    def count(self) -> int:
        """The number of places in the plan; of those that tracks may choose, one in ten is trained."""
        settings = sum(len(settings) for settings in self._settings.values())
        return settings * len(self._facts.targets) * len(self._seeds) // (_PLACES if self._tuning else 1)

    def cells(self, registry: Registry) -> Iterator[tuple[PlannedRun, RunSpec]]:
        """Every run, with its place in the table."""
        file, listed = self._file, self._file.validators
        default = (make(registry, "validator", name, {}) for name in self._facts.validators)
        validators = tuple(validator.ref for validator in (default if listed is None else listed))
        for name, every in self._settings.items():
            cells = (self._cell(settings, validators) for settings in every)
            tried = [(cell, keys_of(cell.to_json())) for cell in cells]
            for target, seed, (index, (cell, key)) in product(self._facts.targets, self._seeds, enumerate(tried)):
                candidate = index if self._searches[name] is not None else None
                own = {"target": target, "sources": self._facts.kept_sources(target), "seed": seed}
                yield PlannedRun(file.name, name, target, seed, key(own), candidate), replace(cell, **own)

    def odd_batches(self) -> Iterator[str]:
        """Warnings about batches with more examples than a domain has, and of one that is normalised."""
        tried, fewest = [settings for every in self._settings.values() for settings in every], self._facts.fewest
        batches = {settings.training.batch for settings in tried}
        for batch in sorted(size for size in batches if isinstance(size, int) and fewest is not None and size > fewest):
            yield (
                f"{self._file.name}: training.batch is {batch}, but a domain has {fewest} training examples (train: "
                f"{self._facts.data.train} of dataset {self._facts.data.name}), so every step draws some more than once"
            )
        ones = {getattr(settings.backbone.component, "norm", "") for settings in tried if settings.training.batch == 1}
        for norm in sorted(ones & {"batch", "domain"}):
            yield (
                f"{self._file.name}: training.batch is 1, so norm: {norm} normalises one row of each domain, which "
                "leaves little or nothing to learn from; set a batch of 2 or more, or another norm"
            )

    def table(self) -> Experiment:
        """The experiment's part of the plan."""
        file, select, data, metric = self._file, self._file.select, self._facts.data, self._file.metric
        if metric is not None and metric.name == self._facts.task.rules.metric.name:
            metric = None  # plans omit the default of the task
        criteria: tuple[str, ...] = ()
        tuning = None
        if select is not None:
            criteria = (*self._facts.validators, ORACLE)
        if select is not None and self._tuning:
            criteria = (*criteria[:-1], *(by for by in select.criteria if by not in (*criteria, FIRST)), FIRST, ORACLE)
            methods = self._file.methods.items()
            oracles = tuple(name for name, method in methods if method.scheme.component.needs_target_labels)
            tuning = Tuning(self._tuning, select.criteria, oracles)
        return Experiment(
            name=file.name,
            dataset=self._facts.data.name,
            task=self._facts.task.kind,
            targets=self._facts.targets,
            methods=tuple(map(self._row, file.methods)),
            seeds=file.seeds,
            notes=(*file.notes, *self._notes(), *data.notes),
            published=file.published.numbers.of(file.methods) if file.published is not None else None,
            criteria=criteria,
            metric=measure_of(metric) if metric is not None else None,
            corrupted=corrupted_source(data),
            label_shift=label_shift_of(data),
            without=self._facts.without,
            tuning=tuning,
            **vars(replace(file.compare, baseline=self._facts.baseline)),
        )

    def _notes(self) -> Iterator[str]:
        """What a reader must know about the steps, the data, target labels in training, and the selection."""
        facts, methods = self._facts, self._file.methods.items()
        if self._file.training.epoch == "equal":
            yield EQUAL_STEPS
        step_free = [name for name, method in methods if isinstance(method.scheme.component, Predictor)]
        given = [name for name in step_free if self._file.methods[name].scheme.component.uses_predictions]
        fitted = [name for name in step_free if name not in given]
        if fitted:
            yield f"Fitted at once to all labelled examples, not in steps: {', '.join(fitted)}."
        if given:
            yield f"Predictions that come with the data, not trained here: {', '.join(given)}."
        yield from _standardised_note(facts)
        yield from _data_notes(facts)
        seen: dict[tuple[float, str], list[str]] = {}
        for name, method in methods:
            seen.setdefault(facts.labels_seen(method), []).append(name)
        for (_, how_many), names in sorted(seen.items()):
            if how_many:
                yield f"Trained with {how_many} labelled examples of the target: {', '.join(names)}."
        if self._file.select is not None:
            yield from select_notes(self._file.select, self._searches)
            yield from source_free_note(facts)

    def _row(self, name: str) -> Method:
        method, search = self._file.methods[name], self._searches[name]
        components = (method.scheme, method.discrepancy, method.aggregator)
        origins = dict.fromkeys(component.entry.origin for component in components if component is not None)
        how = recipe(self._facts, method, search)
        return Method(name, method.reference, how, tuple(origins), search, method.sees_target)

    def _cell(self, settings: Settings, validators: tuple[ComponentSpec, ...]) -> RunSpec:
        """The cell of all targets and seeds."""
        method, metric = settings.method, self._file.metric
        return RunSpec(
            dataset=self._file.dataset.ref,
            fingerprint=self._facts.fingerprint,
            target="",
            sources=(),
            backbone=settings.backbone.ref,
            scheme=method.scheme.ref,
            discrepancy=method.discrepancy.ref if method.discrepancy else None,
            aggregator=method.aggregator.ref if method.aggregator else None,
            mu=method.mu,
            training=settings.training,
            validators=() if method.scheme.component.uses_predictions else validators,
            seed=0,
            split_sources=self._facts.splitting(method),
            labelled_target=self._facts.labelled_target(method),
            prior_correction=method.prior_correction,
            standardise_labels=self._file.standardise_labels and not self._facts.task.has_classes,
            standardise=method.standardise,
            metrics=(metric.ref,) if metric is not None and metric.component.needs_outputs else None,
            keep=tuple(dict.fromkeys(self._file.keep)),
        )


def _standardised_note(facts: ResolvedExperiment) -> Iterator[str]:
    names = [name for name, method in facts.file.methods.items() if method.standardise is not None]
    if not names:
        return
    what = "each word divided by its standard deviation" if facts.network_input.sparse else "mean 0 and variance 1"
    yield f"Inputs standardised in each domain by its own training rows ({what}), without labels: {', '.join(names)}."


def _data_notes(facts: ResolvedExperiment) -> Iterator[str]:
    data = facts.data
    yield PROTOCOLS["transductive" if is_transductive(data) else "held_out"]
    if (source := corrupted_source(data)) is not None:
        yield f"The labels of source {source} are shuffled (`corrupt`)."
    if (shift := label_shift_of(data)) is not None:
        yield f"Label shift (`label_shift`): {shift}."
    if facts.file.standardise_labels and not facts.task.has_classes:
        yield (
            "Labels are standardised by the sources' training rows for every method; predictions and errors are in "
            "their unit."
        )
    lacking = [target for target in facts.targets if target in data.unlabelled_domains]
    if lacking:
        yield (
            "Trained for targets without labels, where nobody can measure how good a method is or which is best; what "
            f"can be known are validators' scores, and the other targets: {', '.join(lacking)}."
        )


def label_shift_of(data: Dataset) -> str | None:
    """Whose shares of classes a suite changes, and how, in words."""
    if not isinstance(data.label_shift, Mapping):
        return None
    domain = data.label_shift["domain"]
    who = "the target" if domain == TARGET else domain
    if "dirichlet" in data.label_shift:
        strength = data.label_shift["dirichlet"]
        return f"the classes of {who} have shares drawn for each target and seed, Dirichlet of strength {strength:g}"
    return f"the classes of {who} have the shares {', '.join(f'{share:g}' for share in data.label_shift['shares'])}"


def recipe(facts: ResolvedExperiment, method: MethodSpec, search: Search | None) -> str:
    """A method in one line, such as `adapt + d_A + sharpmax(gamma=0.9), mu 0.01`.

    It has the scheme, discrepancy, aggregator, mu, the method's own training, the number of updates in a step unless
    it is one, and changes to the sources; of parameters only those that are not at their default. A discrepancy of none
    and the uniform aggregator are omitted. A searched value is a `*`; the selection criterion comes last,
    unless it chooses on tuning seeds, where tables may show several.
    """
    candidates = search.candidates if search is not None else ()
    searched = tuple(dict.fromkeys(path for settings in candidates for path in settings))
    components: list[Configured[Any]] = [method.scheme]
    if method.discrepancy is not None and method.adapts:
        components.append(method.discrepancy)
    if method.aggregator is not None and method.aggregator.name != DEFAULT_AGGREGATOR:
        components.append(method.aggregator)
    parts = [" + ".join(_described(component, searched) for component in components)]
    if method.adapts or method.mu or "mu" in searched:
        parts.append("mu *" if "mu" in searched else f"mu {method.mu:g}")
    parts += _rule(method.training.given)
    if (updates := method.scheme.component.updates) != 1:
        parts.append(f"{updates} updates a step")
    parts += _sources(facts, method)
    if search is not None:
        of, select = ", ".join(path.rpartition(".")[2] for path in searched), facts.file.select
        by = f" by {search.by}" if select is None or select.seeds is None else ""
        parts.append(f"{'best' if by else 'one'} of {len(search.candidates)}{f' ({of})' if of else ''}{by}")
    return ", ".join(parts)


def _described(configured: Configured[Any], searched: Collection[str]) -> str:
    """`name(parameter=value, ...)`, with the parameters that are not at their default, or `*` if they are searched."""
    try:
        usual = list(configured.entry.cls().params().items())
    except (TypeError, ValueError):  # a parameter without default
        usual = []
    odd = {}
    paths = configured.component.file_paths()
    for name, value in configured.params.items():
        if name in paths:
            continue
        if f"{configured.entry.kind}.{configured.name}.{name}" in searched:
            odd[name] = "*"
        elif (name, value) not in usual:
            odd[name] = printable(value if isinstance(value, str) else json.dumps(value), _LONGEST_VALUE)
    return _call(configured.name, odd)


def _rule(changes: Mapping[str, Any]) -> Iterator[str]:
    """What a method, or a stage of one, replaces of how weights are updated."""
    for name, value in changes.items():
        if isinstance(value, OneOf):
            of = _call(value.name, _given(getattr(value, value.name)))
            yield of if name == "optimizer" else f"{name} {of}"
        elif isinstance(value, dict):
            for stage, rule in value.items():
                yield " ".join([f"{stage} afresh:" if rule.given else f"{stage} afresh", *_rule(rule.given)])
        elif isinstance(value, SuitePart) and (given := _given(value)):
            yield _call(name, given)
        else:
            yield f"{name} {value:g}" if isinstance(value, float | int) else f"{name} none"


def _given(part: SuitePart) -> dict[str, str]:
    """The values that a suite gives, as a recipe shows them."""
    values = part.model_dump(exclude_unset=True)
    return {name: f"{value:g}" if isinstance(value, float | int) else str(value) for name, value in values.items()}


def _call(name: str, arguments: Mapping[str, str]) -> str:
    return f"{name}({', '.join(f'{key}={value}' for key, value in arguments.items())})" if arguments else name


def _sources(facts: ResolvedExperiment, method: MethodSpec) -> Iterator[str]:
    if split := facts.splitting(method):
        yield f"sources in {split.clusters} {'clusters' if split.by == 'kmeans' else 'parts by chance'}"
    if labels := facts.labelled_target(method):
        yield f"{labels} target labels"
    if method.standardise is not None:
        yield "each domain standardised"
    if method.prior_correction is not None:
        yield "shares of classes by EM"
