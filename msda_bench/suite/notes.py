"""Words for readers of a table: a line on each method, and notes on the experiment."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from msda_bench.api import Dataset, Predictor
from msda_bench.component.dataset import TARGET, corrupted_source, drops_duplicates
from msda_bench.component.sizes import is_transductive
from msda_bench.errors import printable
from msda_bench.suite.choice import Configured
from msda_bench.suite.plan import FIRST, ORACLE, SELECTED_BY, TARGET_ACCURACY, Search, parts_of
from msda_bench.suite.protocol import OneOf, StageRule, SuitePart
from msda_bench.suite.resolved import ResolvedExperiment
from msda_bench.suite.spec import DEFAULT_AGGREGATOR, ExperimentFile, MethodSpec, SelectSpec

_LONGEST_VALUE = 100
EQUAL_STEPS = (
    "Equal steps: every method, references too, takes as many in an epoch, each on a batch for each of its sources."
)
PROTOCOLS = {
    "held_out": "Held out: tested on examples of the target that no method trains on.",
    "transductive": (
        "Transductive: every method trains on all examples of the target, unlabelled, and is tested on the same ones."
    ),
}
_DRAWN = {
    "random": "drawn at random",
    "grid": "of a grid",
    "shared": "(the method's own settings, and others drawn from axes that all methods share and one of its own)",
}
"""How candidates are drawn, in words."""


def notes_of(experiment: ResolvedExperiment, searches: Mapping[str, Search | None]) -> Iterator[str]:
    """The suite's own notes, then those on steps, data, target labels in training and selection, then the dataset's."""
    file = experiment.file
    yield from file.notes
    if file.training.epoch == "equal":
        yield EQUAL_STEPS
    yield from _method_notes(experiment)
    yield from _data_notes(experiment)
    yield from _label_notes(experiment)
    if file.select is not None:
        yield from _select_notes(file.select, searches)
        yield from _source_free_note(file)
    yield from experiment.data.notes


def _method_notes(experiment: ResolvedExperiment) -> Iterator[str]:
    """Methods that take no steps, or see standardised inputs."""
    fitted, given, standardised = [], [], []
    for name, method in experiment.file.methods.items():
        if method.scheme.component.uses_predictions:
            given.append(name)
        elif isinstance(method.scheme.component, Predictor):
            fitted.append(name)
        if method.standardise is not None:
            standardised.append(name)
    if fitted:
        yield f"Fitted at once to all labelled examples, not in steps: {', '.join(fitted)}."
    if given:
        yield f"Predictions that come with the data, not trained here: {', '.join(given)}."
    if standardised:
        sparse = experiment.network_input.sparse
        how = "each word divided by its standard deviation" if sparse else "mean 0 and variance 1"
        which = "in each domain by its own training rows"
        yield f"Inputs standardised {which} ({how}), without labels: {', '.join(standardised)}."


def _data_notes(experiment: ResolvedExperiment) -> Iterator[str]:
    data = experiment.data
    yield PROTOCOLS["transductive" if is_transductive(data) else "held_out"]
    source, shift = corrupted_source(data), label_shift_of(data)
    if source is not None:
        yield f"The labels of source {source} are shuffled (`corrupt`)."
    if shift is not None:
        yield f"Label shift (`label_shift`): {shift}."
    if drops_duplicates(data):
        yield "Rows that are equal to an earlier one of their domain are left out (`duplicates: drop`)."
    if experiment.file.standardise_labels and not experiment.task.has_classes:
        yield (
            "Labels are standardised by the sources' training rows for every method; predictions and errors are in "
            "their unit."
        )
    lacking = [target for target in experiment.targets if target in data.unlabelled_domains]
    if lacking:
        yield (
            "Trained for targets without labels, where nobody can measure how good a method is or which is best; what "
            f"can be known are validators' scores, and the other targets: {', '.join(lacking)}."
        )


def _label_notes(experiment: ResolvedExperiment) -> Iterator[str]:
    """How many labels of the target methods train with."""
    seen: dict[tuple[float, str], list[str]] = {}
    for name, method in experiment.file.methods.items():
        seen.setdefault(experiment.labels_seen(method), []).append(name)
    for (_, how_many), names in sorted(seen.items()):
        if how_many:
            yield f"Trained with {how_many} labelled examples of the target: {', '.join(names)}."


def _select_notes(select: SelectSpec, tried: Mapping[str, Search | None]) -> Iterator[str]:
    """Notes for the reader on how settings were selected, from the search of each method."""
    drawn, tuned = _DRAWN[select.how], select.seeds is not None
    if tuned:
        yield f"Candidates: {select.budget} of each method, {drawn.strip('()')}."
    else:
        among = f"for each target and seed, among {select.budget} candidates {drawn}"
        yield f"{SELECTED_BY} {_by_criterion(select.by)}, {among}."
    searches = {name: search for name, search in tried.items() if search is not None}
    fewer = []
    for name, search in searches.items():
        if len(search.candidates) < select.budget:
            fewer.append(f"{name} {len(search.candidates)}")
    if fewer:
        yield f"Fewer candidates than {select.budget}, since the search space has no more: {', '.join(fewer)}."
    if tuned:
        return
    for by in (TARGET_ACCURACY, ORACLE):
        others = ", ".join(name for name, search in searches.items() if search.by == by != select.by)
        if others:
            yield f"Trained with the target's labels, and so selected {_by_criterion(by)}: {others}."


def _source_free_note(file: ExperimentFile) -> Iterator[str]:
    """A note on methods that adapt without the sources, if scores of source examples select their settings."""
    if file.select is None:
        return
    by, of_target = file.select.by, {ORACLE, FIRST}
    for validator in file.validators or ():
        if not validator.component.needs_sources:
            of_target.add(validator.name)
    if of_target.issuperset(parts_of(by)):
        return
    names = []
    for name, method in file.methods.items():
        stages = method.scheme.component.stages
        if stages and "sources" not in stages[-1].sees:
            names.append(name)
    if names:
        what = f"adapt without the sources, whose scores fall meanwhile, so {by} favours settings that adapt least"
        yield f"{', '.join(names)}: {what}; see infomax in docs/selection.md."


def _by_criterion(by: str) -> str:
    if by == ORACLE:
        return "by oracle, the score on the target's own test labels, which are not available in practice"
    if by == TARGET_ACCURACY:
        return f"by {by}, the score on labelled training examples of the target that are held out from them"
    return f"by {by}, without target labels"


def label_shift_of(data: Dataset) -> str | None:
    """Describes which domain's class shares a suite changes, and how."""
    if not isinstance(data.label_shift, Mapping):
        return None
    domain = data.label_shift["domain"]
    who = "the target" if domain == TARGET else domain
    if "dirichlet" in data.label_shift:
        strength = data.label_shift["dirichlet"]
        return f"the classes of {who} have shares drawn for each target and seed, Dirichlet of strength {strength:g}"
    shares = ", ".join(f"{share:g}" for share in data.label_shift["shares"])
    return f"the classes of {who} have the shares {shares}"


def recipe(experiment: ResolvedExperiment, method: MethodSpec, search: Search | None) -> str:
    """A method in one line, such as `adapt + d_A + sharpmax(gamma=0.9), mu 0.01`.

    It has the scheme, discrepancy, aggregator, mu, the method's own training, the number of updates in a step unless
    it is one, and changes to the sources; of parameters only those that are not at their default. A discrepancy of none
    and the uniform aggregator are omitted. A searched value is a `*`; the selection criterion comes last, unless it
    chooses on tuning seeds, where tables may show several.
    """
    candidates = () if search is None else search.candidates
    searched = dict.fromkeys(path for settings in candidates for path in settings)
    components: list[Configured[Any]] = [method.scheme]
    if method.discrepancy is not None and method.adapts:
        components.append(method.discrepancy)
    if method.aggregator is not None and method.aggregator.name != DEFAULT_AGGREGATOR:
        components.append(method.aggregator)
    parts = [" + ".join(_described(component, searched) for component in components)]
    if "mu" in searched:
        parts.append("mu *")
    elif method.adapts or method.mu:
        parts.append(f"mu {method.mu:g}")
    parts += _rule(method.training.given)
    if (updates := method.scheme.component.updates) != 1:
        parts.append(f"{updates} updates a step")
    parts += _sources(experiment, method)
    if search is not None:
        select = experiment.file.select
        parts.append(_selected(search, searched, tuned=select is not None and select.seeds is not None))
    return ", ".join(parts)


def _selected(search: Search, searched: Collection[str], *, tuned: bool) -> str:
    names = ", ".join(path.rpartition(".")[2] for path in searched)
    what = f"of {len(search.candidates)}{f' ({names})' if names else ''}"
    return f"one {what}" if tuned else f"best {what} by {search.by}"


def _described(configured: Configured[Any], searched: Collection[str]) -> str:
    """`name(parameter=value, ...)`, with the parameters that are not at their default, or `*` if they are searched."""
    try:
        usual = list(configured.entry.cls().params().items())
    except (TypeError, ValueError):  # a parameter without default
        usual = []
    changed = {}
    paths = configured.component.file_paths()
    for name, value in configured.params.items():
        if name in paths:
            continue
        if f"{configured.entry.kind}.{configured.name}.{name}" in searched:
            changed[name] = "*"
        elif (name, value) not in usual:
            changed[name] = printable(value if isinstance(value, str) else json.dumps(value), _LONGEST_VALUE)
    return _call(configured.name, changed)


def _rule(changes: Mapping[str, Any]) -> Iterator[str]:
    """The settings of training that a method, or one of its stages, replaces."""
    for name, value in changes.items():
        if isinstance(value, OneOf):
            chosen = _call(value.name, _given(getattr(value, value.name)))
            yield chosen if name == "optimizer" else f"{name} {chosen}"
        elif isinstance(value, dict):
            yield from map(_stage, value.items())
        elif isinstance(value, SuitePart) and (given := _given(value)):
            yield _call(name, given)
        elif isinstance(value, float | int):
            yield f"{name} {value:g}"
        else:
            yield f"{name} none"


def _stage(named: tuple[str, StageRule]) -> str:
    name, rule = named
    own = " ".join(_rule(rule.given))
    return f"{name} afresh: {own}" if own else f"{name} afresh"


def _given(part: SuitePart) -> dict[str, str]:
    """The values that a suite gives, as a recipe shows them."""
    values = part.model_dump(exclude_unset=True)
    return {name: f"{value:g}" if isinstance(value, float | int) else str(value) for name, value in values.items()}


def _call(name: str, arguments: Mapping[str, str]) -> str:
    return f"{name}({', '.join(f'{key}={value}' for key, value in arguments.items())})" if arguments else name


def _sources(experiment: ResolvedExperiment, method: MethodSpec) -> Iterator[str]:
    split = experiment.splitting(method)
    if split is not None:
        yield f"sources in {split.clusters} {'clusters' if split.by == 'kmeans' else 'parts by chance'}"
    labels = experiment.labelled_target(method)
    if labels:
        yield f"{labels} target labels"
    if method.standardise is not None:
        yield "each domain standardised"
    if method.prior_correction is not None:
        yield "shares of classes by EM"
