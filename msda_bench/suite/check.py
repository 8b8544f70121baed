"""Checks between the parts of an experiment, such as that its domains exist and its methods can be trained."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from msda_bench.api import Predictor
from msda_bench.component.backbone import Pretrained
from msda_bench.component.base import PLAIN_NAME
from msda_bench.component.dataset import corrupted_source, shifted_domain
from msda_bench.component.sizes import DEFAULT
from msda_bench.errors import BenchError, message_of
from msda_bench.suite.issues import PLAIN_WORDS, Issues, Loc, ValidationIssue, Where, hint, shown_value
from msda_bench.suite.label_checks import check_labels
from msda_bench.suite.network import check_network
from msda_bench.suite.plan import CHANCE_REFERENCE
from msda_bench.suite.protocol import Factors, labelled_part, source_parts
from msda_bench.suite.published import AVERAGE, PublishedNumbers
from msda_bench.suite.resolved import ResolvedExperiment, takes_parts, weighs_sources
from msda_bench.suite.search_checks import check_search

RESERVED = (AVERAGE, "better", "class", "experiment", "interval", "method", "worse")
"""Names that no target, method or experiment may have."""


def check_experiment(sound: Mapping[str, Any]) -> tuple[ResolvedExperiment | None, list[ValidationIssue]]:
    """The experiment of these sound parts, if its data and network can be used, and the mistakes between the parts."""
    if "dataset" not in sound:
        return None, []
    loc: Loc = ("dataset",)
    try:
        experiment = ResolvedExperiment.of(sound)
        loc = ("backbone",)
        experiment.network_input  # noqa: B018 - the backbone may refuse the data
    except BenchError as error:
        return None, [ValidationIssue(loc, message_of(error, 1000))]
    return experiment, [issue for check in _CHECKS for issue in check(experiment)]


def _augmented(experiment: ResolvedExperiment) -> Issues:
    """Random changes of images although their features are computed once."""
    data, backbone = experiment.data, experiment.backbone
    named = data.augmentation()
    if backbone is None or not named or experiment.network_input == data.input:
        return
    why = f"backbone {backbone.name} computes the features of each stored image once"
    remedy = "set trainable: all, or remove" if isinstance(backbone.component, Pretrained) else "remove"
    yield ValidationIssue(("dataset", data.name, named[0]), f"cannot be used: {why}; {remedy} {', '.join(named)}")


def _without_effect(experiment: ResolvedExperiment) -> Issues:
    """Settings of parts that are not trained, do not exist or see no difference, which no run would show."""
    yield from _not_trained(experiment)
    yield from _no_trunk(experiment)
    for name, method in experiment.methods.items():
        if method.split_sources is not None and not takes_parts(method.scheme.component):
            what = f"changes nothing, since {method.scheme.name} does not distinguish sources; remove it"
            yield ValidationIssue(("methods", name, "split_sources"), what, "key")


def _not_trained(experiment: ResolvedExperiment) -> Issues:
    """Parameters of the trained part of a pretrained network that is not trained."""
    backbone = experiment.backbone
    if backbone is None or not isinstance(backbone.component, Pretrained):
        return
    trainable = backbone.component.trainable
    if trainable != "all" and backbone.component.batch_norm == "train":
        what = "changes nothing, since the network is not trained; set trainable: all or remove it"
        yield ValidationIssue(("backbone", backbone.name, "batch_norm"), what, "key")
    if trainable == "none":
        what = "changes nothing, since trainable: none has no hidden layers; set trainable: head or remove it"
        for name in sorted(backbone.given & {"hidden", "dropout", "norm", "bottleneck"}):
            yield ValidationIssue(("backbone", backbone.name, name), what, "key")


def _no_trunk(experiment: ResolvedExperiment) -> Issues:
    """Factors of the learning rate of a pretrained network that is not trained."""
    backbone = experiment.backbone
    if backbone is None or getattr(backbone.component, "trainable", "") == "all":
        return
    remedy = "set trainable: all or remove it" if isinstance(backbone.component, Pretrained) else "remove it"
    what = f"is for a pretrained network, and backbone {backbone.name} trains none; {remedy}"
    for loc, factors in _factors(experiment):
        if factors.trunk != 1:
            yield ValidationIssue((*loc, "trunk"), what)


def _factors(experiment: ResolvedExperiment) -> Iterator[tuple[Loc, Factors]]:
    """All factors of the learning rate, with their places."""
    if experiment.training is not None:
        for place, factors in experiment.training.factors:
            yield ("training", *place), factors
    for name, method in experiment.methods.items():
        for place, factors in method.training.factors:
            yield ("methods", name, "training", *place), factors


def _reserved(experiment: ResolvedExperiment) -> Issues:
    """Names of columns of tables, which have columns of targets, methods and experiments, too."""
    file = experiment.file
    for target in experiment.targets:
        if target in RESERVED:
            remedy = "rename this domain in the data, or name the other targets"
            yield ValidationIssue(("targets",), f"target {target!r}: {_reserved_text(target)}; {remedy}")
    for name in experiment.methods:
        if name in RESERVED:
            yield ValidationIssue(("methods", name), f"{_reserved_text(name)}; rename it", "key")
    if "name" in file.model_fields_set and file.name in RESERVED:
        yield ValidationIssue(("name",), f"{_reserved_text(file.name)}; choose another name")
    # Diverged runs count with the score of the reference of this name.
    name = CHANCE_REFERENCE
    method = experiment.methods.get(name)
    if method is not None and method.scheme.name != name:
        what = f"the name {name!r} is reserved for the scheme {name}, whose score counts for diverged runs; rename it"
        yield ValidationIssue(("methods", name), what, "key")


def _reserved_text(name: str) -> str:
    others = [other for other in RESERVED if other != name]
    return f"{name} is the name of a column of tables, as are {', '.join(others)}"


def _too_few_sources(experiment: ResolvedExperiment) -> Issues:
    name, wanted = experiment.data.name, experiment.file.sources
    for target, sources in experiment.sources.items():
        if target in sources:  # its labels would be visible
            yield ValidationIssue(("dataset",), f"target {shown_value(target)} is among its own sources in {name}")
    if wanted is not None and not set(wanted) <= set(experiment.domains):
        return  # the misspelt source may be the missing one
    counts = {target: len(experiment.kept_sources(target)) for target in experiment.targets}
    loc: Loc = ("dataset",) if wanted is None else ("sources",)
    for target in [target for target, count in counts.items() if count == 0]:
        what = f"target {shown_value(target)} has no source in {name}"
        if wanted is not None:
            what = f"have no source for target {shown_value(target)}, which has {', '.join(experiment.sources[target])}"
        yield ValidationIssue(loc, what)
    lonely = [target for target, count in counts.items() if count == 1]
    names = _weighing(experiment)
    if lonely and names:
        need = "weighs sources and needs two" if len(names) == 1 else "weigh sources and need two"
        what = f"target {shown_value(lonely[0])} has one source left, but {', '.join(names)} {need}"
        yield ValidationIssue(loc, f"{what}; only a scheme that pools them may have one")


def _weighing(experiment: ResolvedExperiment) -> list[str]:
    """The methods that need two sources.

    Parts of one source, or labelled examples of the target, are sources to weigh, too.
    """
    names = []
    for name, method in experiment.methods.items():
        more = experiment.splitting(method) or experiment.labelled_target(method)
        if not more and weighs_sources(method.scheme.component):
            names.append(name)
    return names


def _untrainable(experiment: ResolvedExperiment) -> Issues:
    data, kind = experiment.data, experiment.task.kind
    for name, method in experiment.methods.items():
        scheme, entry = method.scheme.component, method.scheme.entry
        loc = ("methods", name, "scheme")
        try:
            with entry.plugin_errors("cannot list its phases"):
                int(scheme.updates)
        except BenchError as error:
            yield ValidationIssue(loc, message_of(error, 1000))
        if kind not in scheme.tasks:
            yield ValidationIssue(loc, f"{entry.name} trains {' and '.join(scheme.tasks)}; {data.name} is {kind}")
        elif scheme.uses_predictions and not data.gives_predictions:
            what = f"{entry.name} needs predictions in the data, and {data.name} names none (`predictions`)"
            yield ValidationIssue(loc, what)
        elif isinstance(scheme, Predictor) and scheme.uses_inputs and (unfit := _unfit(experiment)):
            yield ValidationIssue(loc, f"{entry.name} {unfit}")
        elif scheme.offsets_weights and (place := _averages(experiment, name)):
            what = f"cannot be used with {name}: {entry.name} replaces weights at each epoch; remove it, or the method"
            yield ValidationIssue(place, what, "key")


def _unfit(experiment: ResolvedExperiment) -> str | None:
    """Why the examples are no rows of numbers, which a scheme that is fitted at once needs."""
    shape = experiment.network_input.shape
    if len(shape) == 1:
        return None
    what = f"reads rows of numbers, and an example of {experiment.data.name} has the shape {shape}"
    return f"{what}; name a backbone with frozen features (`trainable: none`), or remove the method"


def _averages(experiment: ResolvedExperiment, name: str) -> Loc:
    """Where a method's average of weights is set; empty if it has none."""
    own, usual = experiment.methods[name].training.given, experiment.training
    if "average" in own:
        return () if own["average"] is None else ("methods", name, "training", "average")
    return () if usual is None or usual.average is None else ("training", "average")


def _not_standardised(experiment: ResolvedExperiment) -> Issues:
    """Methods that cannot have standardised inputs: they use none, or read images that are decoded batch by batch."""
    for name, method in experiment.methods.items():
        if method.standardise is None:
            continue
        loc = ("methods", name, "standardise")
        if not method.scheme.component.uses_inputs:
            yield ValidationIssue(loc, f"{method.scheme.name} does not look at inputs; remove it", "key")
        elif experiment.backbone is not None and experiment.network_input.bytes:
            why = f"needs numbers, and {experiment.data.name} gives bytes of images to a network that is trained whole"
            remedy = "name a backbone with frozen features (`trainable: head`), or remove it"
            yield ValidationIssue(loc, f"{why}; {remedy}", "key")


def _other_task(experiment: ResolvedExperiment) -> Issues:
    """Metrics, validators and published tables for another task, and validators listed twice."""
    file, kind = experiment.file, experiment.task.kind
    but = f"{experiment.data.name} is {kind}"
    seen = set()
    for index, validator in enumerate(file.validators or []):
        tasks = validator.component.tasks
        if kind not in tasks:
            yield ValidationIssue(("validators", index), f"{validator.name} scores {' and '.join(tasks)}; {but}")
        if validator.name in seen:
            yield ValidationIssue(("validators", index), f"{validator.name} is named twice")
        seen.add(validator.name)
    metric, table = file.metric, file.published.numbers if file.published else None
    if metric is not None and kind not in metric.component.tasks:
        yield ValidationIssue(("metric",), f"{metric.name} measures {' and '.join(metric.component.tasks)}; {but}")
    elif table is not None and metric is not None and metric.name != "accuracy":
        what = f"is {metric.name}, but the published {table.name} is of accuracy; remove one"
        yield ValidationIssue(("metric",), what)
    if table is not None and not experiment.task.has_classes:
        yield ValidationIssue(("published",), f"{table.name} is of {table.metric}; {but}")
    elif table is not None:
        yield from _other_numbers(experiment, table)


def _other_numbers(experiment: ResolvedExperiment, table: PublishedNumbers) -> Issues:
    """Published numbers of other domains, or names for methods that the suite does not have."""
    if table.targets.isdisjoint(experiment.domains):
        named = ", ".join(sorted(table.targets - {AVERAGE}))
        what = f"{table.name} has no number of a domain of {experiment.data.name} (it has {named})"
        yield ValidationIssue(("published",), what)
    if not experiment.methods:
        return
    for name in table.methods:
        if name not in experiment.methods:
            what = f"{shown_value(name)} is not a method{hint(name, experiment.methods)}"
            yield ValidationIssue(("published", "methods", name), what, "key")


def _taken_names(experiment: ResolvedExperiment) -> Issues:
    """A part of a source must not have the name of a domain."""
    parts = set()
    for method in experiment.methods.values():
        split = experiment.splitting(method)
        if split is not None:
            parts |= {part for domain in experiment.domains for part in source_parts(domain, split)}
        if experiment.labelled_target(method):
            parts |= set(map(labelled_part, experiment.domains))
    for name in sorted(parts & set(experiment.domains)):
        what = f"has a domain {shown_value(name)}, which would also be the name of a part of another"
        yield ValidationIssue(("dataset",), what)


def _comparison(experiment: ResolvedExperiment) -> Issues:
    methods = experiment.methods
    if not methods:  # they have mistakes of their own
        return
    for key, name in experiment.file.compare.named_methods.items():
        loc = ("compare", key)
        if name not in methods:
            yield ValidationIssue(loc, f"{shown_value(name)} is not a method{hint(name, methods)}")
        elif methods[name].reference and key == "baseline":
            yield ValidationIssue(loc, f"{shown_value(name)} is a reference; name a method that is ranked")
        elif not methods[name].reference and key == "headroom":
            yield ValidationIssue(loc, f"{shown_value(name)} is ranked; name a reference")


def _no_baseline(experiment: ResolvedExperiment) -> Issues:
    """Options of `compare` that need a baseline, where there is none."""
    compare = experiment.file.compare
    if experiment.baseline is not None or not experiment.methods:
        return
    if compare.pairs == "baseline":
        what = "needs a baseline; name a method in baseline"
        yield ValidationIssue(("compare", "pairs"), what, "key")
    if compare.headroom is not None:
        yield ValidationIssue(("compare", "headroom"), "needs a baseline; name a method in baseline", "key")


def _left_out(experiment: ResolvedExperiment) -> Issues:
    """An experiment without each source must leave methods enough of them, and needs a name."""
    file, loc = experiment.file, ("leave_out_sources",)
    if not file.leave_out_sources:
        return
    if file.select is not None:
        what = "cannot be combined with select, which would choose other settings without each source"
        yield ValidationIssue(loc, what, "key")
    schemes = [method.scheme.component for method in experiment.methods.values()]
    weigh = any(weighs_sources(scheme) for scheme in schemes if not scheme.needs_target_labels)
    need = 3 if weigh else 2
    for target in experiment.targets:
        count = len(experiment.kept_sources(target))
        if 0 < count < need:
            what = f"target {shown_value(target)} has {count} sources; to leave one out takes {need}"
            yield ValidationIssue(loc, what)
            break
    if "name" not in file.model_fields_set:
        return
    for source in dict.fromkeys(source for target in experiment.targets for source in experiment.kept_sources(target)):
        name = experiment.name_without(source)
        if not re.match(PLAIN_NAME, name):
            yield ValidationIssue(loc, f"an experiment cannot be called {shown_value(name)}; it may be {PLAIN_WORDS}")


def _unknown_domains(experiment: ResolvedExperiment) -> Issues:
    """Names of targets and sources, and in the parameters of the dataset, that are not domains."""
    name, domains = experiment.data.name, experiment.domains
    for index, target in enumerate(experiment.file.targets or ()):
        if target not in experiment.sources:
            what = f"{shown_value(target)} is not a target of {name}{hint(target, experiment.sources)}"
            yield ValidationIssue(("targets", index), what)
    for loc, domain, where in _named_domains(experiment):
        if domain not in domains:
            yield ValidationIssue(loc, f"{shown_value(domain)} is not a domain of {name}{hint(domain, domains)}", where)


def _named_domains(experiment: ResolvedExperiment) -> Iterator[tuple[Loc, str, Where]]:
    """Each domain that is named as a source or in the parameters of the dataset, and where."""
    data = experiment.data
    for index, source in enumerate(experiment.file.sources or ()):
        yield ("sources", index), source, "value"
    for key, size in (("train", data.train), ("target_train", data.target_train)):
        if isinstance(size, Mapping):
            for domain in size.keys() - {DEFAULT}:
                yield ("dataset", data.name, key, domain), domain, "key"
    corrupted, shifted = corrupted_source(data), shifted_domain(data, experiment.domains[0])
    if corrupted is not None:
        yield ("dataset", data.name, "corrupt", "source"), corrupted, "value"
    if shifted is not None:
        yield ("dataset", data.name, "label_shift", "domain"), shifted, "value"


_CHECKS = (
    _unknown_domains,
    _reserved,
    _too_few_sources,
    _untrainable,
    check_network,
    _not_standardised,
    _augmented,
    _without_effect,
    _other_task,
    _taken_names,
    _comparison,
    _no_baseline,
    _left_out,
    check_search,
    check_labels,
)
