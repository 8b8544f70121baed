"""Checks, before anything is trained, that the data are there and large enough, and computes frozen features."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal

from msda_bench.api import Backbone, Dataset, File, Files
from msda_bench.component.dataset import sizes_of
from msda_bench.component.sizes import asked, counts, is_transductive, roles_of
from msda_bench.errors import BlamedError, DataError, reported
from msda_bench.plugin_errors import plugin_errors
from msda_bench.plugins import Registry
from msda_bench.plugins.process_state import restored
from msda_bench.suite.run_spec import RunSpec, canonical_json

if TYPE_CHECKING:
    from msda_bench.data import Folders


def ensure_data(
    cells: Iterable[RunSpec],
    registry: Registry,
    report: Callable[[str], None],
    *,
    fetch: bool,
    device: str = "cpu",
) -> None:
    """Checks the bytes of all files of datasets and backbones that the cells need, then fills the cache.

    That includes what datasets prepare for the domains that the cells need, and the frozen features of these domains,
    computed on the device. With `fetch` missing files are downloaded; `report` gets a line on each.

    Raises:
        DataError: one line on all files to fetch; one for each dataset or backbone with all its other unusable files
            and the remedy; one for each file that could not be fetched.
    """
    from msda_bench.data import LocalFiles, folders

    where, planned = folders(), tuple(cells)
    reach = functools.cache(functools.partial(LocalFiles, where))  # each computes the checksum of a file once
    every = [*used("dataset", planned, registry), *used("backbone", planned, registry)]
    owners = [(owner, some, reach(owner.name)) for owner, some in every if owner.files]
    problems = _without_files([(owner, local) for owner, _, local in owners], where, report if fetch else None)
    if not problems:
        for owner, some, local in owners:
            if isinstance(owner, Dataset):
                with reported(problems), deferred_plugin_errors():
                    owner.prepare(local, domains_of(owner, some))
    if problems:
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
        with reported(problems):
            if fetched is not None:
                fetch(owner.files, report=fetched)
            gone = absent(owner.files, where)
            if gone:
                missing[owner.name] = [*missing.get(owner.name, ()), *gone]
                by_name = by_name and set(gone) <= _of_default(owner)
            problems.extend(_faults([file for file in owner.files if file not in gone], local))
    if missing:
        problems.insert(0, describe_absent(missing, where, by_name=by_name))
    return problems


def check_sizes(cells: Iterable[RunSpec], registry: Registry) -> None:
    """Checks the sizes of the domains that the cells need, as far as they are known, also from files that are here.

    Raises:
        DataError: a line on each domain with fewer examples than requested, and on files that list none.
    """
    from msda_bench.data import LocalFiles, folders

    where, lines = folders(), list[str]()
    for dataset, some in used("dataset", tuple(cells), registry):
        extents = sizes_of(dataset)
        here = all(any(path.exists() for path in where.candidates(file)) for file in dataset.files)
        with reported(lines):
            if here and not extents and not dataset.shared_groups:
                with deferred_plugin_errors():
                    extents = sizes_of(dataset, LocalFiles(where, dataset.name, processes=0))
            sources = sorted({(cell.target, cell.sources) for cell in some})
            for domain, target in sorted(roles_of(sources)):
                with reported(lines):
                    if not (is_transductive(dataset) and domain == target):
                        asked(dataset, domain, target)
                    if domain in extents:
                        counts(dataset, domain, target, extents[domain])
    if lines:
        raise DataError(*dict.fromkeys(lines))


def _faults(files: Iterable[File], local: Files) -> Iterable[str]:
    """A line on all files that cannot be used, if there are any, grouped by fault."""
    places_of: dict[str, dict[str, None]] = {}
    lines: list[str] = []
    for file in files:
        with reported(lines):
            local.path(file)
    for line in lines:
        place, _, fault = line.partition(": ")
        places_of.setdefault(fault, {})[place] = None
    if places_of:
        yield "; and ".join(f"{', '.join(places)}: {fault}" for fault, places in places_of.items())


def _of_default(owner: Dataset | Backbone) -> set[File]:
    """The files of a component with its default parameters, which are all that `data fetch NAME` fetches."""
    try:
        return set(type(owner)().files)
    except (TypeError, ValueError):  # a parameter has no default
        return set()


def ensure_features(
    cells: Iterable[RunSpec],
    registry: Registry,
    reach: Callable[[str], Files],
    device: str = "cpu",
) -> None:
    """Computes the features of every domain that cells with a frozen network need, unless they are in the cache.

    Does nothing if the device is on other machines; these compute their own, one process on each. `reach` returns the
    files of a dataset by its name.

    Raises:
        DataError: a line for each fault, with the affected domains.
    """
    if device != "cpu":
        import torch

        if not torch.cuda.is_available():
            return
    problems: list[str] = []
    for dataset, some in used("dataset", cells, registry):
        for backbone, mine in used("backbone", some, registry):
            problems.extend(_computed(dataset, backbone, domains_of(dataset, mine), reach(dataset.name), device))
    if problems:
        raise DataError(*dict.fromkeys(problems))


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


def used(
    kind: Literal["dataset", "backbone"], cells: Iterable[RunSpec], registry: Registry
) -> Iterator[tuple[Any, list[RunSpec]]]:
    """Each component of a kind, as the cells configure it, with the cells that use it."""
    names: dict[int, str] = {}  # the cells of a suite share few components
    groups: dict[str, list[RunSpec]] = {}
    for cell in cells:
        spec = getattr(cell, kind)
        if id(spec) not in names:
            names[id(spec)] = canonical_json([spec.name, spec.given])
        groups.setdefault(names[id(spec)], []).append(cell)
    for some in groups.values():
        spec = getattr(some[0], kind)
        yield registry.entry(kind, spec.name).recreate(spec.given), some


def domains_of(dataset: Dataset, cells: Iterable[RunSpec]) -> tuple[str, ...]:
    """The sources and targets of cells, in the dataset's order."""
    wanted = {domain for cell in cells for domain in (*cell.sources, cell.target)}
    return tuple(domain for domain in dataset.domains if domain in wanted)


@contextlib.contextmanager
def deferred_plugin_errors() -> Iterator[None]:
    """Ignores exceptions of third-party code that is called before training; the runs report them.

    Raises:
        BenchError: raised in the block; the user can fix it.
    """
    with contextlib.suppress(BlamedError), plugin_errors(()), restored():
        yield
