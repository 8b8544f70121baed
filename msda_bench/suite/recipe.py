"""A method in one line, such as `adapt + d_A + sharpmax(gamma=0.9), mu 0.01`."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from typing import Any

from msda_bench.api import Component
from msda_bench.suite.choice import Choice
from msda_bench.suite.optimizers import Optimizer
from msda_bench.suite.options import Options
from msda_bench.suite.plan import Search
from msda_bench.suite.spec import DEFAULT_AGGREGATOR, NO_DISCREPANCY, MethodSpec


def recipe(method: MethodSpec, options: Options, search: Search | None = None) -> str:
    """Scheme, discrepancy, aggregator, mu and an optimiser of its own, then what is done to the sources.

    Only parameters not the default are shown, and how often a step updates the network where that is not once.

    A discrepancy of none and the uniform aggregator go without saying. What is searched is a `*`, and in the end stands
    what selects it.
    """
    searched = _searched(search)
    parts = [describe(method.scheme, searched)]
    adapts = method.discrepancy is not None and method.discrepancy.name != NO_DISCREPANCY
    if method.discrepancy is not None and adapts:
        parts.append(describe(method.discrepancy, searched))
    if method.aggregator is not None and method.aggregator.name != DEFAULT_AGGREGATOR:
        parts.append(describe(method.aggregator, searched))
    told = []
    if adapts or method.mu or "mu" in searched:
        told.append("mu *" if "mu" in searched else f"mu {method.mu:g}")
    told += [*_training(method), *_sources(options)]
    if search is not None:
        of = ", ".join(path.rpartition(".")[2] for path in searched)
        told.append(f"best of {len(search.candidates)}{f' ({of})' if of else ''} by {search.by}")
    return ", ".join([" + ".join(parts), *told])


def describe(choice: Choice[Any], searched: Collection[str] = ()) -> str:
    """`name(parameter=value, ...)`, with the parameters that are not the default, or `*` where they are searched."""
    usual = _defaults(choice.entry.cls)
    starred = {name for name in choice.params if f"{choice.entry.kind}.{choice.name}.{name}" in searched}
    odd = [
        f"{name}={'*' if name in starred else _text(value)}"
        for name, value in choice.params.items()
        if name in starred or (name, value) not in usual
    ]
    return f"{choice.name}({', '.join(odd)})" if odd else choice.name


def _training(method: MethodSpec) -> Iterator[str]:
    if method.optimizer is not None:
        yield _optimizer(method.optimizer)
    updates = method.scheme.component.updates
    if updates != 1:
        yield f"{updates} updates a step"


def _sources(options: Options) -> Iterator[str]:
    if options.split_sources:
        split = options.split_sources
        yield f"sources in {split.clusters} {'clusters' if split.by == 'kmeans' else 'parts by chance'}"
    if options.labelled_target:
        yield f"{options.labelled_target} target labels"


def _optimizer(chosen: Optimizer) -> str:
    """`name(parameter=value, ...)`, with the parameters that the suite sets."""
    given = getattr(chosen, chosen.name).model_dump(exclude_unset=True)
    return f"{chosen.name}({', '.join(f'{name}={value:g}' for name, value in given.items())})" if given else chosen.name


def _searched(search: Search | None) -> tuple[str, ...]:
    """The paths that any candidate sets."""
    found = search.candidates if search is not None else ()
    return tuple(dict.fromkeys(path for settings in found for path in settings))


def _defaults(cls: type[Component]) -> list[tuple[str, Any]]:
    try:
        return list(cls().params().items())
    except (TypeError, ValueError):  # a parameter without default
        return []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
