"""Sees to it, before anything is trained, that the data are there."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msda_bench.api import Dataset, File, Files
from msda_bench.errors import DataError
from msda_bench.plugins import Registry
from msda_bench.suite.cell import Cell, canonical_json


def ensure_data(cells: Iterable[Cell], registry: Registry, tell: Callable[[str], None], *, fetch: bool) -> None:
    """Checks the files of all datasets that the cells need, by their bytes; `tell` gets a line on each download.

    Raises:
        DataError: one line on all files to fetch; one for each dataset with all its other files that cannot be used,
            and what to do; one for each file that could not be fetched.
    """
    from msda_bench.data import LocalFiles, absent, describe_absent, folders
    from msda_bench.data import fetch as download

    where = folders()
    missing: dict[str, list[File]] = {}
    problems: list[str] = []
    for dataset in _datasets(cells, registry):
        try:
            if fetch:
                download(dataset.files, report=tell)
        except DataError as error:
            problems.extend(error.lines)
        else:
            gone = absent(dataset.files, where)
            missing.update({dataset.name: [*missing.get(dataset.name, ()), *gone]} if gone else {})
            local = LocalFiles(where, dataset.name)
            faults = list(_faults([file for file in dataset.files if file not in gone], local))
            problems.extend(faults if gone or faults else _unprepared(dataset, local))
    if missing:
        problems.insert(0, describe_absent(missing, where))
    if problems:
        raise DataError(*dict.fromkeys(problems))


def _faults(files: Iterable[File], local: Files) -> Iterable[str]:
    """A line on all files that cannot be used, if there are any; those with the same fault together."""
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


def _unprepared(dataset: Dataset, local: Files) -> tuple[str, ...]:
    """What is wrong with the contents of files that are here."""
    try:
        dataset.prepare(local)
    except DataError as error:
        return error.lines
    return ()


def _datasets(cells: Iterable[Cell], registry: Registry) -> Iterable[Dataset]:
    refs = {(cell.dataset.name, canonical_json(cell.dataset.params)): cell.dataset for cell in cells}
    for ref in refs.values():
        dataset = registry.entry("dataset", ref.name).create(ref.params)
        if isinstance(dataset, Dataset) and dataset.files:
            yield dataset
