"""What must hold between the parts of an experiment, such as that domains exist and every target has a source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msda_bench.api import Network
from msda_bench.errors import PluginError, message_of, pass_interrupt
from msda_bench.plugins.process_state import put_back
from msda_bench.suite.check_schemes import check_schemes
from msda_bench.suite.check_search import check_search
from msda_bench.suite.choice import Configured
from msda_bench.suite.facts import Facts, weighs_sources
from msda_bench.suite.method import SourceOptions, takes_parts
from msda_bench.suite.mistakes import Fault, Loc, hint, shown
from msda_bench.suite.sources import labelled_part, source_parts
from msda_bench.suite.spec import SplitSpec


def check_experiment(sound: Mapping[str, Any]) -> Iterator[Fault]:
    """The mistakes between the sound parts of an experiment; a part that is missing here is not looked at."""
    if "dataset" not in sound:
        return
    try:
        facts = Facts.of(sound)
    except BaseException as error:  # noqa: BLE001 - a stranger's properties may raise anything
        pass_interrupt(error)
        choice: Configured[Any] = sound["dataset"]
        what = f"dataset {choice.name!r} of {choice.entry.origin} does not say what it is: {choice.entry.fault(error)}"
        yield Fault(("dataset",), what)
        return
    network = _network(facts)
    if isinstance(network, Fault):
        yield network
    yield from _unknown_domains(facts)
    yield from _too_few_sources(facts)
    yield from _untrainable(facts)
    if isinstance(network, Network):
        yield from check_schemes(facts, network)
    yield from _other_task(facts)
    yield from _source_options(facts)
    yield from _ranked_labels(facts)
    yield from _taken_names(facts)
    yield from _comparison(facts)
    yield from check_search(facts)


def _network(facts: Facts) -> Network | Fault | None:
    """The backbone's network, or why there is none."""
    if facts.backbone is None:
        return None
    try:
        with put_back():
            return facts.backbone.component.build(facts.task, facts.input)
    except PluginError as error:
        return Fault(("backbone",), message_of(error, 1000))
    except BaseException as error:  # noqa: BLE001 - a stranger's backbone may raise anything
        pass_interrupt(error)
        entry = facts.backbone.entry
        who = f"backbone {entry.name!r} of {entry.origin}"
        return Fault(("backbone",), f"{who} cannot be built for {facts.dataset.name}: {entry.fault(error)}")


def _unknown_domains(facts: Facts) -> Iterator[Fault]:
    for key, known, noun in (("targets", tuple(facts.sources), "target"), ("sources", facts.domains, "domain")):
        for index, domain in enumerate(facts.parts.get(key) or ()):
            if domain not in known:
                what = f"{shown(domain)} is not a {noun} of {facts.dataset.name}{hint(domain, known)}"
                yield Fault((key, index), what)


def _too_few_sources(facts: Facts) -> Iterator[Fault]:
    name, wanted = facts.dataset.name, facts.wanted_sources
    for target, sources in facts.sources.items():
        if target in sources:  # its labels would be seen
            yield Fault(("dataset",), f"target {shown(target)} is among its own sources in {name}")
    if wanted is not None and not set(wanted) <= set(facts.domains):
        return  # the misspelt one may be the one that is missing
    for target in facts.targets:
        if facts.kept_sources(target):
            continue
        if wanted is None:
            yield Fault(("dataset",), f"target {shown(target)} has no source in {name}")
        else:
            has = ", ".join(facts.sources[target])
            yield Fault(("sources",), f"hold no source of target {shown(target)}; it has {has}")
    yield from _nothing_to_weigh(facts)


def _nothing_to_weigh(facts: Facts) -> Iterator[Fault]:
    lonely = [target for target in facts.targets if len(facts.kept_sources(target)) == 1]
    # Parts of one source, or labelled examples of the target beside it, are sources to weigh, too.
    names = [
        name
        for name, method in (facts.methods.items() if lonely else ())
        if weighs_sources(method) and facts.options(method) == SourceOptions()
    ]
    if names:
        need = "weighs sources and needs two" if len(names) == 1 else "weigh sources and need two"
        what = f"target {shown(lonely[0])} has one source left, but {', '.join(names)} {need}"
        loc = ("dataset",) if facts.wanted_sources is None else ("sources",)
        yield Fault(loc, f"{what}; only a scheme that pools them may have one")


def _untrainable(facts: Facts) -> Iterator[Fault]:
    for name, method in facts.methods.items():
        scheme, entry = method.scheme.component, method.scheme.entry
        try:
            int(scheme.updates)
        except BaseException as error:  # noqa: BLE001 - a stranger's phases may raise anything
            pass_interrupt(error)
            what = f"{entry.name} of {entry.origin} cannot list its phases: {entry.fault(error)}"
            yield Fault(("methods", name, "scheme"), what)
        if facts.task.kind not in scheme.tasks:
            what = f"{entry.name} trains {' and '.join(scheme.tasks)}; {facts.dataset.name} is {facts.task.kind}"
            yield Fault(("methods", name, "scheme"), what)


def _other_task(facts: Facts) -> Iterator[Fault]:
    """Validators and published tables that are of another task, and validators that are named twice."""
    but = f"{facts.dataset.name} is {facts.task.kind}"
    names = [validator.name for validator in facts.validators]
    for index, validator in enumerate(facts.validators):
        tasks = validator.component.tasks
        if facts.task.kind not in tasks:
            yield Fault(("validators", index), f"{validator.name} scores {' and '.join(tasks)}; {but}")
        if validator.name in names[:index]:
            yield Fault(("validators", index), f"{validator.name} is named twice")
    table = facts.parts.get("published")
    if table is not None and facts.task.kind != "classification":
        yield Fault(("published",), f"{table.name} is of {table.metric}; {but}")


def _source_options(facts: Facts) -> Iterator[Fault]:
    """Sources in more parts, and more labels of the target, than the data allow, or to no effect."""
    places: list[tuple[Loc, SplitSpec | None, int]] = [((), facts.split_sources, facts.labelled_target)]
    for name, method in facts.methods.items():
        loc: Loc = ("methods", name)
        places.append((loc, method.split_sources, method.labelled_target or 0))
        if method.split_sources is not None and not takes_parts(method.scheme.component):
            what = f"changes nothing, since {method.scheme.name} does not tell sources apart; remove it"
            yield Fault((*loc, "split_sources"), what, "key")
    data, train = facts.dataset.name, facts.dataset.component.train
    batch = facts.training.batch if facts.training is not None else "all"
    for at, split, labels in places:
        if split is not None and batch != "all" and split.clusters > 1 and split.clusters * batch > train:
            need = f"{split.clusters} clusters of a batch of {batch} at least need {split.clusters * batch} examples"
            what = f"{need}; {data} trains on {train} of each source"
            yield Fault((*at, "split_sources", "clusters"), what)
        if labels > train:
            what = f"must be at most the {train} target examples that {data} trains on, not {labels}"
            yield Fault((*at, "labelled_target"), what)


def _ranked_labels(facts: Facts) -> Iterator[Fault]:
    """Methods that are ranked together must have seen equally many of the target's labels."""
    ranked = {name: method for name, method in facts.methods.items() if not method.reference}
    counts = {name: facts.options(method).labelled_target for name, method in ranked.items()}
    for name, count in counts.items():
        others = ", ".join(map(str, sorted(set(counts.values()) - {count})))
        if others and count != facts.labelled_target:
            what = f"is {count}, but methods ranked with it see {others} target labels; add reference: true"
            yield Fault(("methods", name, "labelled_target"), what)


def _taken_names(facts: Facts) -> Iterator[Fault]:
    """A part of a source must not go by the name of a domain."""
    options = [facts.options(method) for method in facts.methods.values()]
    splits = {each.split_sources for each in options if each.split_sources}
    parts = {part for split in splits for domain in facts.domains for part in source_parts(domain, split)}
    parts |= {labelled_part(domain) for domain in facts.domains if any(each.labelled_target for each in options)}
    for name in sorted(parts & set(facts.domains)):
        yield Fault(("dataset",), f"has a domain {shown(name)}, which is what a part of another would be called")


def _comparison(facts: Facts) -> Iterator[Fault]:
    for key in ("baseline", "against"):
        named = getattr(facts.parts.get("compare"), key, None)
        if named is None or not facts.methods:
            continue
        if named not in facts.methods:
            yield Fault(("compare", key), f"{shown(named)} is none of the methods{hint(named, facts.methods)}")
        elif facts.methods[named].reference:
            yield Fault(("compare", key), f"{shown(named)} is a reference; name a method that is ranked")
