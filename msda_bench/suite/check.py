"""What must hold between the parts of an experiment, such as that domains exist and every target has a source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from msda_bench.api import Backbone, Dataset, InputSpec, Network, Task, Validator
from msda_bench.errors import PluginError, message_of, pass_interrupt
from msda_bench.plugins.process_state import put_back
from msda_bench.suite.baseline import check_comparison
from msda_bench.suite.check_options import check_options, options_of
from msda_bench.suite.check_schemes import check_schemes
from msda_bench.suite.check_search import check_search
from msda_bench.suite.choice import Choice
from msda_bench.suite.faults import Fault
from msda_bench.suite.mistakes import Loc, hint, shown
from msda_bench.suite.options import Options
from msda_bench.suite.published.table import PublishedTable
from msda_bench.suite.spec import MethodSpec

DEFAULT_VALIDATOR = {"classification": "source_accuracy", "regression": "source_risk"}
"""What a suite scores by, by task, unless it names validators."""


@dataclass(frozen=True)
class _Facts:
    name: str
    domains: tuple[str, ...]
    sources: Mapping[str, tuple[str, ...]]  # of each domain that may be a target
    task: Task
    input: InputSpec


def check_experiment(sound: Mapping[str, Any]) -> Iterator[Fault]:
    """The mistakes between the sound parts of an experiment; a part that is missing here is not looked at."""
    if "dataset" not in sound:
        return
    choice: Choice[Dataset] = sound["dataset"]
    try:
        facts = _facts(choice.name, choice.component)
    except BaseException as error:  # noqa: BLE001 - a stranger's properties may raise anything
        pass_interrupt(error)
        what = f"dataset {choice.name!r} of {choice.entry.origin} does not say what it is: {choice.entry.fault(error)}"
        yield Fault(("dataset",), what)
        return
    network = _network(sound.get("backbone"), facts)
    if isinstance(network, Fault):
        yield network
    yield from _unknown("targets", sound.get("targets"), tuple(facts.sources), f"a target of {facts.name}")
    yield from _unknown("sources", sound.get("sources"), facts.domains, f"a domain of {facts.name}")
    yield from _own_sources(facts)
    yield from _too_few_sources(sound, facts)
    yield from _untrainable(sound.get("methods") or {}, facts)
    if isinstance(network, Network):
        yield from _unsteppable(sound, facts, network)
    yield from _unsuited(sound.get("validators") or [], facts)
    yield from _unlike(sound.get("published"), facts)
    yield from check_options(sound)
    yield from check_comparison(sound)
    yield from check_search(sound, DEFAULT_VALIDATOR[facts.task.kind])


def kept_sources(dataset: Dataset, target: str, wanted: tuple[str, ...] | None) -> tuple[str, ...]:
    """The sources of a target, in the dataset's order, of those that the suite wants (None for all)."""
    return tuple(source for source in dataset.sources(target) if wanted is None or source in wanted)


def _facts(name: str, dataset: Dataset) -> _Facts:
    sources = {target: tuple(dataset.sources(target)) for target in dataset.targets}
    dataset.fingerprint()  # asked for later, like the notes; a fault in them belongs here
    "".join(dataset.notes)
    tuple(dataset.files)
    return _Facts(name, tuple(dataset.domains), sources, dataset.task, dataset.input)


def _unknown(key: str, named: tuple[str, ...] | None, known: tuple[str, ...], what: str) -> Iterator[Fault]:
    for index, domain in enumerate(named or ()):
        if domain not in known:
            yield Fault((key, index), f"{shown(domain)} is not {what}{hint(domain, known)}")


def _network(choice: Choice[Backbone] | None, facts: _Facts) -> Network | Fault | None:
    """The backbone's network, or why there is none."""
    if choice is None:
        return None
    try:
        with put_back():
            return choice.component.build(facts.task, facts.input)
    except PluginError as error:
        return Fault(("backbone",), message_of(error, 1000))
    except BaseException as error:  # noqa: BLE001 - a stranger's backbone may raise anything
        pass_interrupt(error)
        who = f"backbone {choice.name!r} of {choice.entry.origin}"
        what = f"{who} cannot be built for {facts.name}: {choice.entry.fault(error)}"
        return Fault(("backbone",), what)


def _unsteppable(sound: Mapping[str, Any], facts: _Facts, network: Network) -> Iterator[Fault]:
    data: Choice[Dataset] = sound["dataset"]
    for target in sound.get("targets") or facts.sources:
        sources = kept_sources(data.component, target, sound.get("sources")) if target in facts.sources else ()
        if sources:
            yield from check_schemes(sound.get("methods") or {}, data, network, sources, target)
            return


def _own_sources(facts: _Facts) -> Iterator[Fault]:
    for target, sources in facts.sources.items():
        if target in sources:  # its labels would be seen
            yield Fault(("dataset",), f"target {shown(target)} is among its own sources in {facts.name}")


def _too_few_sources(sound: Mapping[str, Any], facts: _Facts) -> Iterator[Fault]:
    wanted: tuple[str, ...] | None = sound.get("sources")
    if wanted is not None and not set(wanted) <= set(facts.domains):
        return  # the misspelt one may be the one that is missing
    lonely: list[str] = []
    for target in sound.get("targets") or facts.sources:
        sources = facts.sources.get(target)
        if sources is None:
            continue
        kept = sources if wanted is None else [source for source in sources if source in wanted]
        if len(kept) == 1:
            lonely.append(target)
        elif not kept and wanted is None:
            yield Fault(("dataset",), f"target {shown(target)} has no source in {facts.name}")
        elif not kept:
            yield Fault(("sources",), f"hold no source of target {shown(target)}; it has {', '.join(sources)}")
    if lonely:
        yield from _weighing(sound, lonely[0], ("dataset",) if wanted is None else ("sources",))


def _weighing(sound: Mapping[str, Any], target: str, loc: Loc) -> Iterator[Fault]:
    methods: Mapping[str, MethodSpec] = sound.get("methods") or {}
    # Parts of one source, or labelled examples of the target beside it, are sources to weigh, too.
    names = [name for name, one in methods.items() if _groups_apart(one) and options_of(sound, one) == Options()]
    if names:
        need = "weighs sources and needs two" if len(names) == 1 else "weigh sources and need two"
        what = f"target {shown(target)} has one source left, but {', '.join(names)} {need}"
        yield Fault(loc, f"{what}; only a scheme that pools them may have one")


def _groups_apart(method: MethodSpec) -> bool:
    """Whether two sources are two groups; by the scheme's own word, which may fail for names that it does not know."""
    try:
        return len(method.scheme.component.groups(("a", "b"), "t")) > 1
    except BaseException as error:  # noqa: BLE001 - a stranger's scheme may raise anything; reported when it trains
        pass_interrupt(error)
        return False


def _untrainable(methods: Mapping[str, MethodSpec], facts: _Facts) -> Iterator[Fault]:
    for name, method in methods.items():
        tasks = method.scheme.component.tasks
        try:
            int(method.scheme.component.updates)
        except BaseException as error:  # noqa: BLE001 - a stranger's phases may raise anything
            pass_interrupt(error)
            why = method.scheme.entry.fault(error)
            what = f"{method.scheme.name} of {method.scheme.entry.origin} cannot list its phases: {why}"
            yield Fault(("methods", name, "scheme"), what)
        if facts.task.kind not in tasks:
            what = f"{method.scheme.name} trains {' and '.join(tasks)}; {facts.name} is {facts.task.kind}"
            yield Fault(("methods", name, "scheme"), what)


def _unlike(table: PublishedTable | None, facts: _Facts) -> Iterator[Fault]:
    if table is not None and facts.task.kind != "classification":
        yield Fault(("published",), f"{table.name} is of {table.metric}; {facts.name} is {facts.task.kind}")


def _unsuited(validators: list[Choice[Validator]], facts: _Facts) -> Iterator[Fault]:
    named: set[str] = set()
    for index, choice in enumerate(validators):
        if facts.task.kind not in choice.component.tasks:
            suited = " and ".join(choice.component.tasks)
            yield Fault(("validators", index), f"{choice.name} scores {suited}; {facts.name} is {facts.task.kind}")
        if choice.name in named:
            yield Fault(("validators", index), f"{choice.name} is named twice")
        named.add(choice.name)
