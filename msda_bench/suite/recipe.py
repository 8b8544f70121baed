"""Describes a method for the reader of a table: its recipe in one line, and the baseline."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from msda_bench.api import Component
from msda_bench.suite.choice import Configured
from msda_bench.suite.facts import Facts
from msda_bench.suite.plan import Search
from msda_bench.suite.spec import DEFAULT_AGGREGATOR, POOLED, MethodSpec


def baseline_of(methods: Mapping[str, MethodSpec], named: str | None) -> str | None:
    """The method on which others should improve: the named one, or the only one that pools without adapting."""
    plain = [
        name
        for name, method in methods.items()
        if method.scheme.name == POOLED
        and not (method.adapts or method.mu or method.reference or method.labelled_target)
    ]
    return named or (plain[0] if len(plain) == 1 else None)


def recipe(facts: Facts, method: MethodSpec, search: Search | None = None) -> str:
    """A method in one line, such as `adapt + d_A + sharpmax(gamma=0.9), mu 0.01`.

    It has the scheme, discrepancy, aggregator, mu, the method's own optimiser, the number of updates in a step unless
    it is one, and changes to the sources; of parameters only those that are not at their default. A discrepancy of none
    and the uniform aggregator are omitted. A searched value is a `*`; the selection criterion comes last.
    """
    found = search.candidates if search is not None else ()
    searched = tuple(dict.fromkeys(path for settings in found for path in settings))
    components: list[Configured[Any]] = [method.scheme]
    if method.discrepancy is not None and method.adapts:
        components.append(method.discrepancy)
    if method.aggregator is not None and method.aggregator.name != DEFAULT_AGGREGATOR:
        components.append(method.aggregator)
    parts = [" + ".join(_described(component, searched) for component in components)]
    if method.adapts or method.mu or "mu" in searched:
        parts.append("mu *" if "mu" in searched else f"mu {method.mu:g}")
    parts += [*_training(method), *_sources(facts, method)]
    if search is not None:
        of = ", ".join(path.rpartition(".")[2] for path in searched)
        parts.append(f"best of {len(search.candidates)}{f' ({of})' if of else ''} by {search.by}")
    return ", ".join(parts)


def _described(configured: Configured[Any], searched: Collection[str]) -> str:
    """`name(parameter=value, ...)`, with the parameters that are not at their default, or `*` if they are searched."""
    usual = _defaults(configured.entry.cls)
    odd = {}
    for name, value in configured.params.items():
        if f"{configured.entry.kind}.{configured.name}.{name}" in searched:
            odd[name] = "*"
        elif (name, value) not in usual:
            odd[name] = value if isinstance(value, str) else json.dumps(value)
    return _call(configured.name, odd)


def _defaults(cls: type[Component]) -> list[tuple[str, Any]]:
    try:
        return list(cls().params().items())
    except (TypeError, ValueError):  # a parameter without default
        return []


def _training(method: MethodSpec) -> Iterator[str]:
    if method.optimizer is not None:
        given = getattr(method.optimizer, method.optimizer.name).model_dump(exclude_unset=True)
        yield _call(method.optimizer.name, {name: f"{value:g}" for name, value in given.items()})
    updates = method.scheme.component.updates
    if updates != 1:
        yield f"{updates} updates a step"


def _call(name: str, arguments: Mapping[str, str]) -> str:
    return f"{name}({', '.join(f'{key}={value}' for key, value in arguments.items())})" if arguments else name


def _sources(facts: Facts, method: MethodSpec) -> Iterator[str]:
    if split := facts.splitting(method):
        yield f"sources in {split.clusters} {'clusters' if split.by == 'kmeans' else 'parts by chance'}"
    if labels := facts.labelled_target(method):
        yield f"{labels} target labels"
