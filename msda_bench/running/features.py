"""Computes frozen features before anything is trained, so that runs find them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msda_bench.api import Backbone, Dataset
from msda_bench.errors import DataError
from msda_bench.plugins import Registry
from msda_bench.running.needed import domains_of, used
from msda_bench.suite.cell import Cell


def ensure_features(cells: Iterable[Cell], registry: Registry, device: str) -> None:
    """Computes the features of every domain that cells with a frozen network need, unless they are in the cache.

    Raises:
        DataError: a line for each domain on what is wrong.
    """
    problems: list[str] = []
    for dataset, some in used(Dataset, cells, registry):
        for backbone, mine in used(Backbone, some, registry):
            problems.extend(_computed(dataset, backbone, domains_of(dataset, mine), device))
    if problems:
        raise DataError(*dict.fromkeys(problems))


def _computed(dataset: Dataset, backbone: Backbone, domains: Iterable[str], device: str) -> Iterator[str]:
    from msda_bench.data import LocalFiles
    from msda_bench.data.features import Frozen
    from msda_bench.engine.loaded import load_domain

    frozen = Frozen.of(backbone, dataset)
    files = LocalFiles(dataset=dataset.name)
    for domain in domains if frozen is not None else ():
        try:
            frozen.features(load_domain(dataset, domain, files), files, device)
        except DataError as error:
            yield from (f"{dataset.name}: {domain}: {line}" for line in error.lines)
