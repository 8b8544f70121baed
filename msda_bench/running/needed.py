"""Which components and domains some cells need."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from msda_bench.api import Component, Dataset
from msda_bench.plugins import Registry
from msda_bench.suite.cell import Cell, canonical_json

C = TypeVar("C", bound=Component)


def used(kind: type[C], cells: Iterable[Cell], registry: Registry) -> Iterator[tuple[C, list[Cell]]]:
    """Each component of a kind that a cell must have, as the cells configure it, with the cells that use it."""
    groups: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        ref = getattr(cell, kind.kind)
        groups.setdefault((ref.name, canonical_json(ref.params)), []).append(cell)
    for some in groups.values():
        ref = getattr(some[0], kind.kind)
        component = registry.entry(ref.kind, ref.name).create(ref.params)
        if isinstance(component, kind):
            yield component, some


def domains_of(dataset: Dataset, cells: Iterable[Cell]) -> tuple[str, ...]:
    """The sources and targets of cells, in the dataset's order."""
    wanted = {domain for cell in cells for domain in (*cell.sources, cell.target)}
    return tuple(domain for domain in dataset.domains if domain in wanted)
