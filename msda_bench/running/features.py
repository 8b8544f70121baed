"""Computes frozen features before anything is trained, so that runs find them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from msda_bench.api import Backbone, Dataset, Files
from msda_bench.errors import DataError
from msda_bench.plugins import Registry
from msda_bench.running.needed import deferred_plugin_errors, domains_of, used
from msda_bench.suite.cell import Cell


def ensure_features(
    cells: Iterable[Cell], registry: Registry, reach: Callable[[str], Files], device: str = "cpu"
) -> None:
    """Computes the features of every domain that cells with a frozen network need, unless they are in the cache.

    Does nothing if the device is on other machines; these compute their own, one process on each.

    Args:
        cells: the cells to be trained.
        registry: the installed components.
        reach: returns the files of a dataset by its name.
        device: where to compute.

    Raises:
        DataError: a line for each fault, with the affected domains.
    """
    if not _is_here(device):
        return
    problems: list[str] = []
    for dataset, some in used("dataset", cells, registry):
        for backbone, mine in used("backbone", some, registry):
            problems.extend(_computed(dataset, backbone, domains_of(dataset, mine), reach(dataset.name), device))
    if problems:
        raise DataError(*dict.fromkeys(problems))


def _is_here(device: str) -> bool:
    if device == "cpu":
        return True
    import torch

    return torch.cuda.is_available()


def _computed(dataset: Dataset, backbone: Backbone, domains: Iterable[str], files: Files, device: str) -> Iterator[str]:
    from msda_bench.data.features import Frozen
    from msda_bench.engine.loaded import load_domain

    frozen = Frozen.of(backbone, dataset)
    if frozen is None:
        return
    faults: dict[str, list[str]] = {}  # a wrong file of weights affects all domains
    for domain in domains:
        data = None
        try:
            with deferred_plugin_errors():
                data = load_domain(dataset, domain, files)
            if data is not None:
                frozen.features(data, files, device)
        except DataError as error:
            for line in error.lines:
                faults.setdefault(line, []).append(domain)
    yield from (f"{dataset.name}: {', '.join(where)}: {line}" for line, where in faults.items())
