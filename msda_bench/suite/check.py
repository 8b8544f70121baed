"""What must hold between the parts of an experiment: domains exist, every target has a source, scores suit the task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from msda_bench.api import Dataset, Validator
from msda_bench.suite.choice import Choice
from msda_bench.suite.faults import Fault
from msda_bench.suite.mistakes import hint, shown


@dataclass(frozen=True)
class _Facts:
    name: str
    domains: tuple[str, ...]
    sources: Mapping[str, tuple[str, ...]]  # of each domain that may be a target
    task: str


def check_experiment(sound: Mapping[str, Any]) -> Iterator[Fault]:
    """The mistakes between the sound parts of an experiment; a part that is missing here is not looked at."""
    if "dataset" not in sound:
        return
    choice: Choice[Dataset] = sound["dataset"]
    try:
        facts = _facts(choice.name, choice.component)
    except Exception as error:  # noqa: BLE001 - a stranger's properties may raise anything
        reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
        yield Fault(("dataset",), f"dataset {choice.name!r} of {choice.entry.origin} does not say what it is: {reason}")
        return
    yield from _unknown("targets", sound.get("targets"), tuple(facts.sources), f"a target of {facts.name}")
    yield from _unknown("sources", sound.get("sources"), facts.domains, f"a domain of {facts.name}")
    yield from _without_source(sound, facts)
    yield from _unsuited(sound.get("validators") or [], facts)


def kept_sources(dataset: Dataset, target: str, wanted: tuple[str, ...] | None) -> tuple[str, ...]:
    """The sources of a target, in the dataset's order, of those that the suite wants (None for all)."""
    return tuple(source for source in dataset.sources(target) if wanted is None or source in wanted)


def _facts(name: str, dataset: Dataset) -> _Facts:
    sources = {target: tuple(dataset.sources(target)) for target in dataset.targets}
    dataset.fingerprint()  # asked for later; a fault in it belongs here
    return _Facts(name, tuple(dataset.domains), sources, dataset.task.kind)


def _unknown(key: str, named: tuple[str, ...] | None, known: tuple[str, ...], what: str) -> Iterator[Fault]:
    for index, domain in enumerate(named or ()):
        if domain not in known:
            yield Fault((key, index), f"{shown(domain)} is not {what}{hint(domain, known)}")


def _without_source(sound: Mapping[str, Any], facts: _Facts) -> Iterator[Fault]:
    wanted: tuple[str, ...] | None = sound.get("sources")
    if wanted is not None and not set(wanted) <= set(facts.domains):
        return  # the misspelt one may be the one that is missing
    for target in sound.get("targets") or facts.sources:
        sources = facts.sources.get(target)
        if sources is None or any(wanted is None or source in wanted for source in sources):
            continue
        if wanted is None:
            yield Fault(("dataset",), f"target {shown(target)} has no source in {facts.name}")
        else:
            yield Fault(("sources",), f"hold no source of target {shown(target)}; it has {', '.join(sources)}")


def _unsuited(validators: list[Choice[Validator]], facts: _Facts) -> Iterator[Fault]:
    named: set[str] = set()
    for index, choice in enumerate(validators):
        if facts.task not in choice.component.tasks:
            suited = " and ".join(choice.component.tasks)
            yield Fault(("validators", index), f"{choice.name} scores {suited}; {facts.name} is {facts.task}")
        if choice.name in named:
            yield Fault(("validators", index), f"{choice.name} is named twice")
        named.add(choice.name)
