"""Checks, before anything is trained, that the data are there and large enough."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from msda_bench.api import Array, Backbone, Dataset, DomainData, Extent, File, Files
from msda_bench.component.sizes import counts, known_extents
from msda_bench.data.splits import extent_of, split_domains
from msda_bench.errors import BenchError, DataError
from msda_bench.plugins import Registry
from msda_bench.running.features import ensure_features
from msda_bench.running.needed import deferred_plugin_errors, domains_of, used
from msda_bench.suite.cell import Cell

if TYPE_CHECKING:
    from msda_bench.data import Folders

_LARGEST = 1 << 28
"""The maximum size of files that are read to count examples before anything is trained, in bytes."""


def ensure_data(
    cells: Iterable[Cell], registry: Registry, report: Callable[[str], None], *, fetch: bool, device: str = "cpu"
) -> None:
    """Checks the bytes of all files of datasets and backbones that the cells need, then fills the cache.

    That includes what datasets prepare for the domains that the cells need, and the frozen features of these domains.

    Args:
        cells: the cells to be trained.
        registry: the installed components.
        report: gets a line on each download.
        fetch: whether missing files may be downloaded.
        device: where the features are computed.

    Raises:
        DataError: one line on all files to fetch; one for each dataset or backbone with all its other unusable files
            and the remedy; one for each file that could not be fetched.
    """
    from msda_bench.data import LocalFiles, folders

    where, planned = folders(), tuple(cells)
    kept: dict[str, LocalFiles] = {}  # each computes the checksum of a file once

    def reach(name: str) -> LocalFiles:
        return kept.setdefault(name, LocalFiles(where, name))

    owners = [(owner, some, reach(owner.name)) for owner, some in _owners(planned, registry)]
    if problems := _without_files([(owner, local) for owner, _, local in owners], where, report if fetch else None):
        raise DataError(*dict.fromkeys(problems))
    if problems := [line for owner in owners for line in _unprepared(*owner)]:
        raise DataError(*dict.fromkeys(problems))
    ensure_features(planned, registry, reach, device)


def _without_files(
    owners: Iterable[tuple[Dataset | Backbone, Files]], where: Folders, fetched: Callable[[str], None] | None
) -> list[str]:
    """Lines on the files that cannot be used; missing ones are fetched first if there is a function to report it."""
    from msda_bench.data import absent, describe_absent, fetch

    missing: dict[str, list[File]] = {}
    problems: list[str] = []
    by_name = True
    for owner, local in owners:
        try:
            if fetched is not None:
                fetch(owner.files, report=fetched)
        except DataError as error:
            problems.extend(error.lines)
            continue
        gone = absent(owner.files, where)
        if gone:
            missing[owner.name] = [*missing.get(owner.name, ()), *gone]
            by_name = by_name and set(gone) <= _of_default(owner)
        problems.extend(_faults([file for file in owner.files if file not in gone], local))
    return [*([describe_absent(missing, where, by_name=by_name)] if missing else []), *problems]


def check_sizes(cells: Iterable[Cell], registry: Registry) -> None:
    """Checks the sizes of the domains that the cells need, for datasets that do not declare them or share groups.

    Only if their files are here and either list the examples (`Dataset.extents`), or are not large and their rows
    (`Files.rows`) were made; the counts are kept in the cache. Domains that share groups are loaded, and split once.

    Raises:
        DataError: a line on each domain with fewer examples than requested, and on files that list none.
    """
    from msda_bench.data import LocalFiles, folders

    planned, where, lines = tuple(cells), folders(), {}
    for dataset, some in used("dataset", planned, registry):
        known = bool(known_extents(dataset)) and not dataset.shared_groups
        if not dataset.files or known or not _small(dataset, where):
            continue
        local = LocalFiles(where, dataset.name, processes=0)
        if dataset.shared_groups:
            lines.update(dict.fromkeys(_unsplit(dataset, some, local)))
            continue
        try:
            extents = _listed(dataset, local) or _counted(dataset, local)
        except DataError as error:
            lines.update(dict.fromkeys(error.lines))
            continue
        parts = {(domain, cell.target) for cell in some for domain in (*cell.sources, cell.target)}
        for domain, target in sorted(parts & {(domain, target) for domain in extents for _, target in parts}):
            try:
                counts(dataset, domain, target, extents[domain])
            except DataError as error:
                lines.update(dict.fromkeys(error.lines))
    if lines:
        raise DataError(*lines)


def _unsplit(dataset: Dataset, cells: Iterable[Cell], files: Files) -> Iterator[str]:
    """Why the first seed's runs cannot be split; nothing if the domains cannot be loaded, which `run` reports."""
    loaded: dict[str, DomainData] = {}
    with contextlib.suppress(BenchError), deferred_plugin_errors():
        loaded = {domain: dataset.load(domain, files) for domain in domains_of(dataset, cells)}
    runs = {(cell.target, cell.sources): cell.seed for cell in reversed(list(cells))}
    for (target, sources), seed in runs.items() if loaded else ():
        try:
            with deferred_plugin_errors():
                split_domains(dataset, target, {name: loaded[name] for name in (*sources, target)}, seed=seed)
        except DataError as error:
            yield from error.lines


def _small(dataset: Dataset, where: Folders) -> bool:
    """Whether all files are here, and list the examples or are small enough to be read for their sizes."""
    if type(dataset).extents is not Dataset.extents:
        return all(any(path.exists() for path in where.candidates(file)) for file in dataset.files)
    found = [next((path for path in where.candidates(file) if path.is_file()), None) for file in dataset.files]
    return all(found) and sum(path.stat().st_size for path in found if path is not None) <= _LARGEST


def _listed(dataset: Dataset, files: Files) -> Mapping[str, Extent]:
    """The sizes of the domains that the files list; raises DataError if these are unusable."""
    found: dict[str, Extent] = {}
    with deferred_plugin_errors():
        found.update(dataset.extents(files))
    return found


def _counted(dataset: Dataset, files: Files) -> dict[str, Extent]:
    """The sizes of all domains, counted by loading them once; empty if that fails, which `run` reports."""

    def count() -> dict[str, Array]:
        loaded = {domain: dataset.load(domain, files) for domain in dataset.domains}
        found = {name: extent_of(len(data.y) if data.test is None else data.test) for name, data in loaded.items()}
        return {name: np.atleast_1d(extent) for name, extent in found.items()}

    kept: Mapping[str, Array] = {}
    with contextlib.suppress(BenchError), deferred_plugin_errors():
        kept = files.derived(f"sizes {dataset.name} {dataset.fingerprint()}", count)
    return {name: (int(size[0]), int(size[1])) if len(size) > 1 else int(size[0]) for name, size in kept.items()}


def _faults(files: Iterable[File], local: Files) -> Iterable[str]:
    """A line on all files that cannot be used, if there are any, grouped by fault."""
    found: dict[str, dict[str, None]] = {}
    for file in files:
        try:
            local.path(file)
        except DataError as error:
            for line in error.lines:
                place, _, fault = line.partition(": ")
                found.setdefault(fault, {})[place] = None
    if found:
        yield "; and ".join(f"{', '.join(places)}: {fault}" for fault, places in found.items())


def _unprepared(owner: Dataset | Backbone, cells: Iterable[Cell], local: Files) -> tuple[str, ...]:
    """The faults in the contents of local files."""
    try:
        with deferred_plugin_errors():
            if isinstance(owner, Dataset):
                owner.prepare(local, domains_of(owner, cells))
    except DataError as error:
        return error.lines
    return ()


def _of_default(owner: Dataset | Backbone) -> set[File]:
    """The files of a component with its default parameters, which are all that `data fetch NAME` fetches."""
    try:
        return set(type(owner)().files)
    except (TypeError, ValueError):  # a parameter has no default
        return set()


def _owners(cells: Sequence[Cell], registry: Registry) -> Iterator[tuple[Dataset | Backbone, list[Cell]]]:
    """The datasets and backbones that have files, and the cells that use them."""
    every = (used("dataset", cells, registry), used("backbone", cells, registry))
    return ((owner, some) for kind in every for owner, some in kind if owner.files)
