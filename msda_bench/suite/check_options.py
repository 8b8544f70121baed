"""What must hold of split sources and of labelled examples of the target."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msda_bench.api import Dataset
from msda_bench.suite.choice import Choice
from msda_bench.suite.faults import Fault
from msda_bench.suite.mistakes import Loc, shown
from msda_bench.suite.options import Options, method_options, takes_parts
from msda_bench.suite.sources import labelled_part, source_parts
from msda_bench.suite.spec import MethodSpec, SplitSpec


def check_options(sound: Mapping[str, Any]) -> Iterator[Fault]:
    """The mistakes in `split_sources` and `labelled_target`, of the suite and of its methods."""
    methods: Mapping[str, MethodSpec] = sound.get("methods") or {}
    places: list[tuple[Loc, SplitSpec | None, int | None]] = [
        ((), sound.get("split_sources"), sound.get("labelled_target")),
        *((("methods", name), method.split_sources, method.labelled_target) for name, method in methods.items()),
    ]
    for loc, split, labels in places:
        yield from _too_fine(sound, loc, split)
        yield from _too_many(sound, loc, labels)
    yield from _without_effect(methods)
    yield from _unequal(methods, sound)
    yield from _taken(methods, sound)


def options_of(sound: Mapping[str, Any], method: MethodSpec) -> Options:
    """A method's options in an experiment of which some parts may be missing."""
    return method_options(method, sound.get("split_sources"), sound.get("labelled_target") or 0)


def _too_fine(sound: Mapping[str, Any], loc: Loc, split: SplitSpec | None) -> Iterator[Fault]:
    if split is None or "training" not in sound:
        return
    data: Choice[Dataset] = sound["dataset"]
    batch, train = sound["training"].batch, data.component.train
    if batch != "all" and split.clusters > 1 and split.clusters * batch > train:
        need = f"{split.clusters} clusters of a batch of {batch} at least need {split.clusters * batch} examples"
        what = f"{need}; {data.name} trains on {train} of each source"
        yield Fault((*loc, "split_sources", "clusters"), what)


def _too_many(sound: Mapping[str, Any], loc: Loc, labels: int | None) -> Iterator[Fault]:
    data: Choice[Dataset] = sound["dataset"]
    if (labels or 0) > data.component.train:
        what = f"must be at most the {data.component.train} target examples that {data.name} trains on, not {labels}"
        yield Fault((*loc, "labelled_target"), what)


def _without_effect(methods: Mapping[str, MethodSpec]) -> Iterator[Fault]:
    for name, method in methods.items():
        if method.split_sources is not None and not takes_parts(method.scheme.component):
            what = f"changes nothing, since {method.scheme.name} does not tell sources apart; remove it"
            yield Fault(("methods", name, "split_sources"), what, "key")


def _unequal(methods: Mapping[str, MethodSpec], sound: Mapping[str, Any]) -> Iterator[Fault]:
    """Methods that are ranked together must have seen equally many of the target's labels."""
    ranked = {name: method for name, method in methods.items() if not method.reference}
    usual = sound.get("labelled_target") or 0
    counts = {name: options_of(sound, method).labelled_target for name, method in ranked.items()}
    if len(set(counts.values())) < 2:  # noqa: PLR2004 - two that differ
        return
    for name, count in counts.items():
        if count != usual:
            others = ", ".join(map(str, sorted(set(counts.values()) - {count})))
            what = f"is {count}, but methods ranked with it see {others} target labels; add reference: true"
            yield Fault(("methods", name, "labelled_target"), what)


def _taken(methods: Mapping[str, MethodSpec], sound: Mapping[str, Any]) -> Iterator[Fault]:
    """A part of a source must not go by the name of a domain."""
    data: Choice[Dataset] = sound["dataset"]
    domains = data.component.domains
    options = [options_of(sound, method) for method in methods.values()]
    splits = {each.split_sources for each in options if each.split_sources}
    made = {part for split in splits for domain in domains for part in source_parts(domain, split)}
    made |= {labelled_part(domain) for domain in domains if any(each.labelled_target for each in options)}
    for name in sorted(made & set(domains)):
        yield Fault(("dataset",), f"has a domain {shown(name)}, which is what a part of another would be called")
