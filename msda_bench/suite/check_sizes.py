"""Checks that domains exist and are large enough for every role, and that no method sees labels of the test."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msda_bench.api import DataError, Group
from msda_bench.component.dataset import corrupted_source, shifted_domain
from msda_bench.component.sizes import DEFAULT, HOLD_OUT, asked, beside_all, counts, is_transductive
from msda_bench.suite.facts import Facts
from msda_bench.suite.mistakes import Fault, hint, shown
from msda_bench.suite.search import leaves_out

_REFUSED = "sees labels of the target, which in `protocol: transductive` are those of the test; remove it"


def check_sizes(facts: Facts) -> Iterator[Fault]:
    """Sizes for unknown domains, domains that are too small, and test labels that a method would see."""
    data = facts.data
    faults = [*_unknown(facts), *(_of(facts, key, what) for key, what in beside_all(data))]
    yield from faults or (_of(facts, key, what) for key, what in dict.fromkeys(_shortages(facts)))
    if not faults:
        yield from _nothing_held_out(facts)
    if is_transductive(data):
        if facts.file.labelled_target:
            yield Fault(("labelled_target",), _REFUSED, "key")
        for name, method in facts.file.methods.items():
            if method.labelled_target:
                yield Fault(("methods", name, "labelled_target"), _REFUSED, "key")
            if method.scheme.component.needs_target_labels:
                yield Fault(("methods", name, "scheme"), f"{method.scheme.name} {_REFUSED}")


def _nothing_held_out(facts: Facts) -> Iterator[Fault]:
    """Validators that need held-out examples of the sources although none are left."""
    lacking = next((source for source, _, held in facts.held_out() if held is False), None)
    for index, validator in enumerate(facts.file.validators or ()) if lacking is not None else ():
        if validator.component.needs_sources:
            what = f"{validator.name} needs held-out examples of the sources, and none of {shown(lacking)} are left"
            yield Fault(("validators", index), f"{what}; {HOLD_OUT}")


def _of(facts: Facts, key: str, what: str) -> Fault:
    return Fault(("dataset", facts.name, key), what)


def _unknown(facts: Facts) -> Iterator[Fault]:
    """Names in the sizes and in `corrupt` that are not domains."""
    data = facts.data
    named = [
        (key, domain)
        for key, size in (("train", data.train), ("target_train", data.target_train))
        if isinstance(size, Mapping)
        for domain in size
        if domain != DEFAULT
    ]
    source = corrupted_source(data)
    named += [("corrupt", source)] if source is not None else []
    shifted = shifted_domain(data, next(iter(facts.domains)))
    named += [("label_shift", shifted)] if shifted is not None else []
    inside = {"corrupt": "source", "label_shift": "domain"}
    for key, domain in named:
        if domain not in facts.domains:
            what = f"{shown(domain)} is not a domain of {facts.name}{hint(domain, facts.domains)}"
            yield Fault(
                ("dataset", facts.name, key, inside.get(key, domain)), what, "value" if key in inside else "key"
            )


def _shortages(facts: Facts) -> Iterator[tuple[str, str]]:
    """The parameter at fault and a message, for every domain in every role."""
    for target, sources in _runs(facts):
        for domain in (*sources, target):
            try:
                if not (is_transductive(facts.data) and domain == target):
                    asked(facts.data, domain, target)
                if domain in facts.extents:
                    counts(facts.data, domain, target, facts.extents[domain])
            except DataError as error:
                key = "target_train" if domain == target and facts.data.target_train is not None else "train"
                yield key, error.lines[0].partition(": ")[2]


def _runs(facts: Facts) -> Iterator[tuple[str, Group]]:
    """Each target with its sources, and each source in the role of the target of the others."""
    select = facts.file.select
    for target in facts.targets:
        sources = facts.kept_sources(target)
        yield target, sources
        for source in sources if select is not None and leaves_out(select) else ():
            yield source, tuple(other for other in sources if other != source)
