"""Expands a suite into its runs: every method on every target with every seed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, product

from msda_bench.component.dataset import corrupted_source
from msda_bench.errors import SuiteError
from msda_bench.plugins import Registry
from msda_bench.suite.choice import make, metric_info
from msda_bench.suite.load import Suite
from msda_bench.suite.notes import label_shift_of, notes_of, recipe
from msda_bench.suite.plan import FIRST, ORACLE, Experiment, Method, Plan, PlannedRun, Search, Tuning
from msda_bench.suite.resolved import ResolvedExperiment
from msda_bench.suite.run_spec import ComponentSpec, RunSpec, keys_of
from msda_bench.suite.search import Settings, candidates_of

MAX_RUNS = 100_000
_PLACES = 10
"""How many places a plan may have for each run, where settings are chosen on tuning seeds."""


@dataclass(frozen=True)
class Expansion:
    """The tables of a suite, and its runs by key, in the plan's order.

    There are fewer runs than planned ones if two methods have the same settings.
    `warnings` are lines on settings that train, but leave little to learn from.
    """

    plan: Plan
    cells: dict[str, RunSpec]
    warnings: tuple[str, ...]


def expand(suite: Suite, registry: Registry) -> Expansion:
    """All tables and runs of a suite.

    Raises:
        SuiteError: it asks for more than 100,000 runs.
        PluginError: the default validator is not installed.
    """
    planners = [ExperimentPlanner(experiment) for experiment in suite.experiments]
    wanted = sum(planner.count() for planner in planners)
    if wanted > MAX_RUNS:
        raise SuiteError(f"suite {suite.name} asks for {wanted} runs; at most {MAX_RUNS}, so split it")
    runs: dict[str, RunSpec] = {}
    planned: list[PlannedRun] = []
    for planner in planners:
        for place, run in planner.runs(registry):
            planned.append(place)
            known = runs.setdefault(place.key, run)
            if not set(run.keep) <= set(known.keep):
                runs[place.key] = replace(known, keep=tuple(dict.fromkeys((*known.keep, *run.keep))))
    plan = Plan(suite.name, tuple(planner.table for planner in planners), tuple(planned))
    warnings = tuple(line for planner in planners for line in planner.odd_batches())
    return Expansion(plan, runs, warnings)


class ExperimentPlanner:
    """Plans one experiment.

    Attributes:
        table: the experiment's part of the plan.
    """

    def __init__(self, experiment: ResolvedExperiment) -> None:
        self._experiment, self._file = experiment, experiment.file
        tried = {name: candidates_of(self._file, name) for name in self._file.methods}
        self._settings = [settings for _, settings in tried.values()]
        self.table = self._table({name: search for name, (search, _) in tried.items()})

    def count(self) -> int:
        """The number of runs in the plan; a tenth of it with tuning seeds, since criteria choose only a few."""
        settings = sum(map(len, self._settings))
        count = settings * len(self.table.targets) * len(self.table.every_seed)
        return count // _PLACES if self.table.tuning else count

    def runs(self, registry: Registry) -> Iterator[tuple[PlannedRun, RunSpec]]:
        """Every run, with its place in the table."""
        table, validators = self.table, self._file.validators
        if validators is None:
            validators = [make(registry, "validator", name, {}) for name in self._experiment.validators]
        specs = tuple(validator.spec for validator in validators)
        for method, candidates in zip(table.methods, self._settings, strict=True):
            tried = []
            for settings in candidates:
                run = self._run(settings, specs)
                tried.append((run, keys_of(run.to_json())))
            for target, seed, (index, (run, key)) in product(table.targets, table.every_seed, enumerate(tried)):
                own = {"target": target, "sources": self._experiment.kept_sources(target), "seed": seed}
                candidate = None if method.search is None else index
                yield PlannedRun(table.name, method.name, target, seed, key(own), candidate), replace(run, **own)

    def odd_batches(self) -> Iterator[str]:
        """Warnings about batches with more examples than a domain has, and about normalised batches of one."""
        name, data, fewest = self._file.name, self._experiment.data, self._experiment.fewest
        batches: set[int] = set()
        norms = set()
        for settings in chain.from_iterable(self._settings):
            batch = settings.training.batch
            if batch != "all":
                batches.add(batch)
            if batch == 1:
                norms.add(getattr(settings.backbone.component, "norm", ""))
        for batch in sorted(batches):
            if fewest is not None and batch > fewest:
                yield (
                    f"{name}: training.batch is {batch}, but a domain has {fewest} training examples (train: "
                    f"{data.train} of dataset {data.name}), so every step draws some more than once"
                )
        for norm in sorted(norms & {"batch", "domain"}):
            yield (
                f"{name}: training.batch is 1, so norm: {norm} normalises one row of each domain, which "
                "leaves little or nothing to learn from; set a batch of 2 or more, or another norm"
            )

    def _table(self, searches: Mapping[str, Search | None]) -> Experiment:
        """The experiment's part of the plan, from the search of each method."""
        experiment, file, metric = self._experiment, self._file, self._file.metric
        if metric is not None and metric.name == experiment.task.rules.metric.name:
            metric = None  # plans omit the default of the task
        return Experiment(
            name=file.name,
            dataset=experiment.data.name,
            task=experiment.task.kind,
            targets=experiment.targets,
            methods=tuple(self._method(name, search) for name, search in searches.items()),
            seeds=file.seeds,
            notes=tuple(notes_of(experiment, searches)),
            published=None if file.published is None else file.published.numbers.of(file.methods),
            criteria=self._criteria(),
            metric=None if metric is None else metric_info(metric),
            corrupted=corrupted_source(experiment.data),
            label_shift=label_shift_of(experiment.data),
            without=experiment.without,
            tuning=self._tuned(),
            **vars(replace(file.compare, baseline=experiment.baseline)),
        )

    def _criteria(self) -> tuple[str, ...]:
        """The criteria by which settings may be selected, the oracle last."""
        select, criteria = self._file.select, self._experiment.validators
        if select is None:
            return ()
        if select.seeds is not None:
            more = [by for by in select.criteria if by not in (*criteria, FIRST, ORACLE)]
            criteria = (*criteria, *more, FIRST)
        return (*criteria, ORACLE)

    def _tuned(self) -> Tuning | None:
        select = self._file.select
        if select is None or select.seeds is None:
            return None
        oracles = []
        for name, method in self._file.methods.items():
            if method.scheme.component.needs_target_labels:
                oracles.append(name)
        return Tuning(select.seeds, select.criteria, tuple(oracles))

    def _method(self, name: str, search: Search | None) -> Method:
        method = self._file.methods[name]
        components = (method.scheme, method.discrepancy, method.aggregator)
        origins = dict.fromkeys(component.entry.origin for component in components if component is not None)
        how = recipe(self._experiment, method, search)
        return Method(name, method.reference, how, tuple(origins), search, method.sees_target)

    def _run(self, settings: Settings, validators: tuple[ComponentSpec, ...]) -> RunSpec:
        """The run of these settings, without a target, its sources and a seed."""
        method, metric = settings.method, self._file.metric
        return RunSpec(
            dataset=self._file.dataset.spec,
            fingerprint=self._experiment.fingerprint,
            target="",
            sources=(),
            backbone=settings.backbone.spec,
            scheme=method.scheme.spec,
            discrepancy=None if method.discrepancy is None else method.discrepancy.spec,
            aggregator=None if method.aggregator is None else method.aggregator.spec,
            mu=method.mu,
            training=settings.training,
            validators=() if method.scheme.component.uses_predictions else validators,
            seed=0,
            split_sources=self._experiment.splitting(method),
            labelled_target=self._experiment.labelled_target(method),
            prior_correction=method.prior_correction,
            standardise_labels=self._file.standardise_labels and not self._experiment.task.has_classes,
            standardise=method.standardise,
            metrics=(metric.spec,) if metric is not None and metric.component.needs_outputs else None,
            keep=tuple(dict.fromkeys(self._file.keep)),
        )
