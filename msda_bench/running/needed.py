"""Finds the components and domains that some cells need."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any, Literal

from msda_bench.api import Dataset
from msda_bench.blame import blaming
from msda_bench.errors import BlamedError
from msda_bench.plugins import Registry
from msda_bench.plugins.process_state import restored
from msda_bench.suite.cell import Cell, canonical_json


def used(
    kind: Literal["dataset", "backbone"], cells: Iterable[Cell], registry: Registry
) -> Iterator[tuple[Any, list[Cell]]]:
    """Each component of a kind, as the cells configure it, with the cells that use it."""
    groups: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        ref = getattr(cell, kind)
        groups.setdefault((ref.name, canonical_json(ref.params)), []).append(cell)
    for some in groups.values():
        ref = getattr(some[0], kind)
        yield registry.entry(kind, ref.name).create(ref.params), some


def domains_of(dataset: Dataset, cells: Iterable[Cell]) -> tuple[str, ...]:
    """The sources and targets of cells, in the dataset's order."""
    wanted = {domain for cell in cells for domain in (*cell.sources, cell.target)}
    return tuple(domain for domain in dataset.domains if domain in wanted)


@contextlib.contextmanager
def deferred_plugin_errors() -> Iterator[None]:
    """Ignores exceptions of third-party code that is called before training; the runs report them.

    Raises:
        BenchError: raised in the block; the user can fix it.
    """
    with contextlib.suppress(BlamedError), blaming(()), restored():
        yield
