"""The sources of a run: whole or in parts, and with some of the target's examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msda_bench.suite.protocol import Splitting

if TYPE_CHECKING:  # results import this module, but not torch
    from msda_bench.api import Group, Scheme


def labelled_groups(
    scheme: Scheme, sources: Group, target: str, splitting: Splitting | None, labelled_target: int
) -> tuple[Group, ...]:
    """The labelled groups of a run, from the scheme's grouping of the sources' parts.

    If all parts of a source are drawn as one, they have the source's own name, so that a scheme that pools the sources
    draws the same batches with and without splitting. Labelled examples of the target, if any, are the last source.
    """
    parts = {source: source_parts(source, splitting) for source in sources}
    names = [part for of_source in parts.values() for part in of_source]
    if labelled_target:
        names.append(labelled_part(target))
    return tuple(_whole(group, parts) for group in scheme.groups(tuple(names), target))


def batches_of(groups: Sequence[Group], sources: int) -> int:
    """The number of batches that each labelled group draws in a step if all methods see equally many examples.

    One for each of its domains. A single group, such as the target of an oracle, draws one for each source.

    Args:
        groups: of a run.
        sources: the number of source domains of the run.

    Raises:
        ValueError: the groups hold different numbers of domains, so some examples would count more than others.
    """
    counts = sorted({len(group) for group in groups})
    if len(counts) != 1:
        raise ValueError(f"its groups hold {' and '.join(map(str, counts))} domains; add epoch: scheme to training")
    return max(counts[0], sources) if len(groups) == 1 else counts[0]


def source_parts(source: str, splitting: Splitting | None) -> Group:
    """The names of a source's parts, such as books/0; its own name if it is not split."""
    if splitting is None or splitting.clusters == 1:
        return (source,)
    return tuple(f"{source}/{part}" for part in range(splitting.clusters))


def labelled_part(target: str) -> str:
    """The name of the source that holds the target's labelled examples."""
    return f"{target}/labelled"


def _whole(group: Group, parts: Mapping[str, Group]) -> Group:
    source_of = {part: source for source, of_source in parts.items() for part in of_source}
    drawn: dict[str, list[str]] = {}
    for name in group:
        drawn.setdefault(source_of.get(name, name), []).append(name)
    whole = [[source] if set(found) == set(parts.get(source, ())) else found for source, found in drawn.items()]
    return tuple(name for found in whole for name in found)
