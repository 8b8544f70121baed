"""Checks between the parts of an experiment: that domains exist, and that no method sees labels of the test."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from msda_bench.api import Predictor
from msda_bench.component.backbone import Pretrained
from msda_bench.component.dataset import corrupted_source, shifted_domain
from msda_bench.component.sizes import DEFAULT, beside_all, is_transductive
from msda_bench.errors import BenchError, message_of
from msda_bench.suite.issues import PLAIN_NAME, PLAIN_WORDS, Loc, ValidationIssue, hint, shown
from msda_bench.suite.network import check_network
from msda_bench.suite.plan import CHANCE_REFERENCE, ORACLE
from msda_bench.suite.protocol import UpdateRule, labelled_part, source_parts
from msda_bench.suite.published import AVERAGE, PublishedNumbers
from msda_bench.suite.resolved import ResolvedExperiment, takes_parts, weighs_sources
from msda_bench.suite.search import check_search

RESERVED = (AVERAGE, "better", "class", "experiment", "interval", "method", "worse")
"""What no target, method or experiment may be called."""


def check_experiment(sound: Mapping[str, Any]) -> tuple[ResolvedExperiment | None, list[ValidationIssue]]:
    """The facts of an experiment, if its data and network can be used, and the mistakes between its sound parts."""
    if "dataset" not in sound:
        return None, []
    loc: Loc = ("dataset",)
    try:
        facts = ResolvedExperiment.of(sound)
        loc = ("backbone",)
        facts.network_input  # noqa: B018 - the backbone may refuse the data
    except BenchError as error:
        return None, [ValidationIssue(loc, message_of(error, 1000))]
    return facts, [fault for check in _CHECKS for fault in check(facts)]


def _augmented(facts: ResolvedExperiment) -> Iterator[ValidationIssue]:
    """Random changes of images although their features are computed once."""
    named = facts.data.augmentation()
    if facts.backbone is None or not named or facts.network_input == facts.data.input:
        return
    why = f"backbone {facts.backbone.name} computes the features of each stored image once"
    remedy = "; set trainable: all, or remove" if isinstance(facts.backbone.component, Pretrained) else "; remove"
    yield ValidationIssue(("dataset", facts.data.name, named[0]), f"cannot be used: {why}{remedy} {', '.join(named)}")


def _without_effect(facts: ResolvedExperiment) -> Iterator[ValidationIssue]:
    """Settings of parts that are not trained, do not exist or see no difference, which no run would show."""
    backbone = facts.backbone
    trained = getattr(backbone.component, "trainable", "") if backbone is not None else "all"
    if backbone is not None and isinstance(backbone.component, Pretrained) and trained != "all":
        if backbone.component.batch_norm == "train":
            what = "changes nothing, since the network is not trained; set trainable: all or remove it"
            yield ValidationIssue(("backbone", backbone.name, "batch_norm"), what, "key")
        layers = {"hidden", "dropout", "norm", "bottleneck"} if trained == "none" else set()
        what = "changes nothing, since trainable: none has no hidden layers; set trainable: head or remove it"
        yield from (
            ValidationIssue(("backbone", backbone.name, name), what, "key") for name in sorted(backbone.given & layers)
        )
    rules: list[tuple[Loc, UpdateRule | None]] = [((), facts.training)]
    rules += [(("methods", name), method.training) for name, method in facts.file.methods.items()]
    factors = [(loc, *one) for loc, rule in rules if rule is not None for one in rule.factors]
    for loc, place, rates in factors if backbone is not None else ():
        if trained != "all" and rates.trunk != 1 and backbone is not None:
            remedy = "set trainable: all or remove it" if isinstance(backbone.component, Pretrained) else "remove it"
            what = f"is for a pretrained network, and backbone {backbone.name} trains none; {remedy}"
            yield ValidationIssue((*loc, "training", *place, "trunk"), what)
    for name, method in facts.file.methods.items():
        if method.split_sources is not None and not takes_parts(method.scheme.component):
            what = f"changes nothing, since {method.scheme.name} does not distinguish sources; remove it"
            yield ValidationIssue(("methods", name, "split_sources"), what, "key")


def _reserved(facts: ResolvedExperiment) -> Iterator[ValidationIssue]:
    """Names of columns of tables, which have columns of targets, methods and experiments, too."""
    why = f"is the name of a column of tables, as are {', '.join(RESERVED)}"
    for target in [target for target in facts.targets if target in RESERVED]:
        remedy = "rename this domain in the data, or name the other targets"
        yield ValidationIssue(("targets",), f"target {target!r}: {target} {why}; {remedy}")
    for name in [name for name in facts.file.methods if name in RESERVED]:
        yield ValidationIssue(("methods", name), f"{name} {why}; rename it", "key")
    if "name" in facts.file.model_fields_set and facts.file.name in RESERVED:
        yield ValidationIssue(("name",), f"{facts.file.name} {why}; choose another name")
    # Diverged runs count with the score of the reference of this name.
    name = CHANCE_REFERENCE
    method = facts.file.methods.get(name)
    if method is not None and method.scheme.name != name:
        what = f"the name {name!r} is that of the scheme {name}, with whose score diverged runs count; rename it"
        yield ValidationIssue(("methods", name), what, "key")


def _too_few_sources(facts: ResolvedExperiment) -> Iterator[ValidationIssue]:
    name, wanted = facts.data.name, facts.file.sources
    for target, sources in facts.sources.items():
        if target in sources:  # its labels would be visible
            yield ValidationIssue(("dataset",), f"target {shown(target)} is among its own sources in {name}")
    if wanted is not None and not set(wanted) <= set(facts.domains):
        return  # the misspelt source may be the missing one
    for target in facts.targets:
        if facts.kept_sources(target):
            continue
        if wanted is None:
            yield ValidationIssue(("dataset",), f"target {shown(target)} has no source in {name}")
        else:
            has = ", ".join(facts.sources[target])
            yield ValidationIssue(("sources",), f"hold no source of target {shown(target)}; it has {has}")
    lonely = [target for target in facts.targets if len(facts.kept_sources(target)) == 1]
    # Parts of one source, or labelled examples of the target, are sources to weigh, too.
    names = [
        name
        for name, method in facts.file.methods.items()
        if weighs_sources(method.scheme.component) and not (facts.splitting(method) or facts.labelled_target(method))
    ]
    if lonely and names:
        need = "weighs sources and needs two" if len(names) == 1 else "weigh sources and need two"
        what = f"target {shown(lonely[0])} has one source left, but {', '.join(names)} {need}"
        loc: Loc = ("dataset",) if wanted is None else ("sources",)
        yield ValidationIssue(loc, f"{what}; only a scheme that pools them may have one")


def _untrainable(facts: ResolvedExperiment) -> Iterator[ValidationIssue]:
    for name, method in facts.file.methods.items():
        scheme, entry = method.scheme.component, method.scheme.entry
        try:
            with entry.plugin_errors("cannot list its phases"):
                int(scheme.updates)
        except BenchError as error:
            yield ValidationIssue(("methods", name, "scheme"), message_of(error, 1000))
        if facts.task.kind not in scheme.tasks:
            what = f"{entry.name} trains {' and '.join(scheme.tasks)}; {facts.data.name} is {facts.task.kind}"
            yield ValidationIssue(("methods", name, "scheme"), what)
        elif scheme.uses_predictions and not facts.data.gives_predictions:
            what = f"{entry.name} needs predictions in the data, and {facts.data.name} names none (`predictions`)"
            yield ValidationIssue(("methods", name, "scheme"), what)
        elif isinstance(scheme, Predictor) and scheme.uses_inputs and (unfit := _unfit(facts)):
            yield ValidationIssue(("methods", name, "scheme"), f"{entry.name} {unfit}")
        elif scheme.offsets_weights and (loc := _averages(facts, name)):
            what = f"means nothing for {name}: {entry.name} replaces weights at each epoch; remove it, or the method"
            yield ValidationIssue(loc, what, "key")


def _no_labels(facts: ResolvedExperiment) -> Iterator[ValidationIssue]:
    """What needs labels of a target that has none."""
    lacking = [target for target in facts.targets if target in facts.data.unlabelled_domains]
    if not lacking:
        return
    if len(lacking) < len(facts.targets):
        why = f"{shown(lacking[0])} has no labels to be tested on, so no average can; give it a suite of its own"
        yield ValidationIssue(("targets",), f"{why}, and name the others here")
    what = f"needs labels of target {shown(lacking[0])}, which has none; remove it, or name other targets"
    yield from _of_label_users(facts, what)
    if shifted_domain(facts.data, lacking[0]) in facts.data.unlabelled_domains:
        yield ValidationIssue(("dataset", facts.data.name, "label_shift", "domain"), what)
    select = facts.file.select
    if select is not None and ORACLE in select.criteria:
        yield ValidationIssue(("select", "by" if select.by == ORACLE else "tracks"), f"oracle {what}")


def _not_standardised(facts: ResolvedExperiment) -> Iterator[ValidationIssue]:
    """Methods whose inputs cannot be standardised: they see none, or images that become numbers batch by batch."""
    for name, method in facts.file.methods.items():
        if method.standardise is None:
            continue
        loc = ("methods", name, "standardise")
        if not method.scheme.component.uses_inputs:
            yield ValidationIssue(loc, f"{method.scheme.name} does not look at inputs; remove it", "key")
        elif facts.backbone is not None and facts.network_input.bytes:
            why = f"needs numbers, and {facts.data.name} gives bytes of images to a network that is trained whole"
            yield ValidationIssue(
                loc, f"{why}; name a backbone with frozen features (`trainable: head`), or remove it", "key"
            )


def _averages(facts: ResolvedExperiment, name: str) -> Loc:
    """Where a method's average of weights is set; empty if it has none."""
    own, usual = facts.file.methods[name].training.given, facts.training
    if own.get("average", usual and usual.average) is None:
        return ()
    return (*(("methods", name) if "average" in own else ()), "training", "average")


def _unfit(facts: ResolvedExperiment) -> str | None:
    """Why the examples are no rows of numbers, which a scheme that is fitted at once needs."""
    shape = facts.network_input.shape
    if len(shape) == 1:
        return None
    what = f"reads rows of numbers, and an example of {facts.data.name} has the shape {shape}"
    return f"{what}; name a backbone with frozen features (`trainable: none`), or remove the method"


def _other_task(facts: ResolvedExperiment) -> Iterator[ValidationIssue]:
    """Metrics, validators and published tables for another task, and validators listed twice."""
    but = f"{facts.data.name} is {facts.task.kind}"
    listed = facts.file.validators or []
    names = [validator.name for validator in listed]
    for index, validator in enumerate(listed):
        tasks = validator.component.tasks
        if facts.task.kind not in tasks:
            yield ValidationIssue(("validators", index), f"{validator.name} scores {' and '.join(tasks)}; {but}")
        if validator.name in names[:index]:
            yield ValidationIssue(("validators", index), f"{validator.name} is named twice")
    metric, table = facts.file.metric, facts.file.published.numbers if facts.file.published else None
    if metric is not None and facts.task.kind not in metric.component.tasks:
        yield ValidationIssue(("metric",), f"{metric.name} measures {' and '.join(metric.component.tasks)}; {but}")
    elif table is not None and metric is not None and metric.name != "accuracy":
        yield ValidationIssue(
            ("metric",), f"is {metric.name}, but the published {table.name} is of accuracy; remove one"
        )
    if table is not None and not facts.task.has_classes:
        yield ValidationIssue(("published",), f"{table.name} is of {table.metric}; {but}")
    elif table is not None:
        yield from _not_of_these(facts, table)


def _not_of_these(facts: ResolvedExperiment, table: PublishedNumbers) -> Iterator[ValidationIssue]:
    """Published numbers of other domains, or names for methods that the suite does not have."""
    if table.targets.isdisjoint(facts.domains):
        named = ", ".join(sorted(table.targets - {AVERAGE}))
        yield ValidationIssue(
            ("published",), f"{table.name} has no number of a domain of {facts.data.name} (it has {named})"
        )
    for name in table.methods:
        if facts.file.methods and name not in facts.file.methods:
            what = f"{shown(name)} is not a method{hint(name, facts.file.methods)}"
            yield ValidationIssue(("published", "methods", name), what, "key")


def _classes(facts: ResolvedExperiment) -> Iterator[ValidationIssue]:
    """Shares of classes, and their correction, of a regression; shares of another number of classes."""
    wanted, classes = facts.data.label_shift, facts.task.classes
    if isinstance(wanted, Mapping):
        if not facts.task.has_classes:
            yield ValidationIssue(
                ("dataset", facts.data.name, "label_shift"), "shifts classes; the task is regression", "key"
            )
        elif len(wanted.get("shares", ())) not in {0, classes}:
            what = f"has {len(wanted['shares'])} numbers; {facts.data.name} has {classes} classes"
            yield ValidationIssue(("dataset", facts.data.name, "label_shift", "shares"), what)
    for name, method in facts.file.methods.items():
        if method.prior_correction is not None and not facts.task.has_classes:
            what = "corrects shares of classes; the task is regression"
            yield ValidationIssue(("methods", name, "prior_correction"), what, "key")


def _ranked_labels(facts: ResolvedExperiment) -> Iterator[ValidationIssue]:
    """Methods that are ranked together must see equally many target labels."""
    methods = facts.file.methods.items()
    counts = {name: facts.labelled_target(method) for name, method in methods if not method.reference}
    for name, count in counts.items():
        others = ", ".join(map(str, sorted(set(counts.values()) - {count})))
        if others and count != facts.file.labelled_target:
            what = f"is {count}, but methods ranked with it see {others} target labels; add reference: true"
            yield ValidationIssue(("methods", name, "labelled_target"), what)


def _taken_names(facts: ResolvedExperiment) -> Iterator[ValidationIssue]:
    """A part of a source must not have the name of a domain."""
    methods = facts.file.methods.values()
    splits = {split for method in methods if (split := facts.splitting(method))}
    parts = {part for split in splits for domain in facts.domains for part in source_parts(domain, split)}
    parts |= {labelled_part(domain) for domain in facts.domains if any(map(facts.labelled_target, methods))}
    for name in sorted(parts & set(facts.domains)):
        yield ValidationIssue(
            ("dataset",), f"has a domain {shown(name)}, which would also be the name of a part of another"
        )


def _comparison(facts: ResolvedExperiment) -> Iterator[ValidationIssue]:
    methods = facts.file.methods
    if not methods:  # they have mistakes of their own
        return
    for key, name in facts.file.compare.named_methods.items():
        loc = ("compare", key)
        if name not in methods:
            yield ValidationIssue(loc, f"{shown(name)} is not a method{hint(name, methods)}")
        elif methods[name].reference and key == "baseline":
            yield ValidationIssue(loc, f"{shown(name)} is a reference; name a method that is ranked")
        elif not methods[name].reference and key == "headroom":
            yield ValidationIssue(loc, f"{shown(name)} is ranked; name a reference")


def _no_baseline(facts: ResolvedExperiment) -> Iterator[ValidationIssue]:
    """Options of `compare` that need a baseline, where there is none."""
    compare = facts.file.compare
    if facts.baseline is not None or not facts.file.methods:
        return
    if compare.pairs == "baseline":
        what = "is of comparisons with one method; name that method in baseline"
        yield ValidationIssue(("compare", "pairs"), what, "key")
    if compare.headroom is not None:
        yield ValidationIssue(("compare", "headroom"), "is over a baseline; name that method in baseline", "key")


def _left_out(facts: ResolvedExperiment) -> Iterator[ValidationIssue]:
    """An experiment without each source must leave methods enough of them, and needs a name."""
    if not facts.file.leave_out_sources:
        return
    loc = ("leave_out_sources",)
    if facts.file.select is not None:
        yield ValidationIssue(
            loc, "cannot stand beside select, which would choose other settings without each source", "key"
        )
    schemes = [method.scheme.component for method in facts.file.methods.values()]
    weigh = any(weighs_sources(scheme) for scheme in schemes if not scheme.needs_target_labels)
    for target in facts.targets:
        count, need = len(facts.kept_sources(target)), 3 if weigh else 2
        if 0 < count < need:
            yield ValidationIssue(loc, f"target {shown(target)} has {count} sources; to leave one out takes {need}")
            break
    sources = dict.fromkeys(source for target in facts.targets for source in facts.kept_sources(target))
    for source in sources if "name" in facts.file.model_fields_set else ():
        name = facts.name_without(source)
        if not re.match(PLAIN_NAME, name):
            yield ValidationIssue(loc, f"an experiment cannot be called {shown(name)}; it may be {PLAIN_WORDS}")


def _label_firewall(facts: ResolvedExperiment) -> Iterator[ValidationIssue]:
    """Sizes that contradict the transductive protocol, and test labels that a method would see in it."""
    for key, what in beside_all(facts.data):
        yield ValidationIssue(("dataset", facts.data.name, key), what)
    if is_transductive(facts.data):
        what = "sees labels of the target, which in `protocol: transductive` are those of the test; remove it"
        yield from _of_label_users(facts, what)


def _of_label_users(facts: ResolvedExperiment, what: str) -> Iterator[ValidationIssue]:
    """A mistake at each place that lets a method see labels of the target."""
    if facts.file.labelled_target:
        yield ValidationIssue(("labelled_target",), what, "key")
    for name, method in facts.file.methods.items():
        if method.labelled_target:
            yield ValidationIssue(("methods", name, "labelled_target"), what, "key")
        if method.scheme.component.needs_target_labels:
            yield ValidationIssue(("methods", name, "scheme"), f"{method.scheme.name} {what}")


def _unknown_domains(facts: ResolvedExperiment) -> Iterator[ValidationIssue]:
    """Names of targets and sources, and in the parameters of the dataset, that are not domains."""
    data = facts.data
    named: list[tuple[Loc, str, Literal["key", "value"]]] = [
        ((key, index), domain, "value")
        for key in ("targets", "sources")
        for index, domain in enumerate(getattr(facts.file, key) or ())
    ]
    for key, size in (("train", data.train), ("target_train", data.target_train)):
        domains = [domain for domain in size if domain != DEFAULT] if isinstance(size, Mapping) else []
        named += [(("dataset", data.name, key, domain), domain, "key") for domain in domains]
    if (source := corrupted_source(data)) is not None:
        named.append((("dataset", data.name, "corrupt", "source"), source, "value"))
    if (shifted := shifted_domain(data, facts.domains[0])) is not None:
        named.append((("dataset", data.name, "label_shift", "domain"), shifted, "value"))
    for loc, domain, where in named:
        known, noun = (tuple(facts.sources), "target") if loc[0] == "targets" else (facts.domains, "domain")
        if domain not in known:
            yield ValidationIssue(loc, f"{shown(domain)} is not a {noun} of {data.name}{hint(domain, known)}", where)


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
    _classes,
    _no_labels,
    _ranked_labels,
    _taken_names,
    _comparison,
    _no_baseline,
    _left_out,
    check_search,
    _label_firewall,
)
