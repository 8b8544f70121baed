"""A domain's examples, checked as its dataset returns them: third-party code, and files from anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from msda_bench.api import Array, DataError, Dataset, DomainData, Files
from msda_bench.component.dataset import drops_duplicates
from msda_bench.data.near import digests
from msda_bench.engine.picker import are_bytes


def load_domain(dataset: Dataset, domain: str, files: Files) -> DomainData:
    """All examples of a domain but for duplicates, if the dataset drops them; read-only, since every split shares them.

    Inputs that are not finite pass: such a run diverges, and training reports it.

    Raises:
        DataError: a file is missing or wrong, or examples and labels are not what the dataset promises.
    """
    data = dataset.load(domain, files)
    fault = fault_of(data, dataset, domain)
    if fault is not None:
        raise DataError(
            f"dataset {dataset.name}: domain {domain!r}: {fault}; report it to its author or repair its files"
        )
    if drops_duplicates(dataset):
        data = _without_duplicates(data)
    x = data.x
    inputs = (x,) if isinstance(x, np.ndarray) else (x.data, x.indices, x.indptr)
    for array in (*inputs, data.y, data.test, data.groups, data.texts, data.predictions):
        _freeze(array)
    return data


def _without_duplicates(data: DomainData) -> DomainData:
    """The rows that are equal to no earlier one, in their order; official test examples come before the others."""
    rows = np.arange(len(data.y))
    if data.test is not None:
        rows = np.concatenate([rows[data.test], rows[~data.test]])
    _, first = np.unique(digests(data.x)[rows], return_index=True)
    kept = np.sort(rows[first])
    arrays: dict[str, Any] = {"x": data.x[kept], "places": kept}
    for name in ("y", "test", "groups", "texts", "predictions", "places"):
        values = getattr(data, name)
        if values is not None:
            arrays[name] = values[kept]
    identity = None if data.identity is None else f"{data.identity} without duplicates"
    return replace(data, identity=identity, **arrays)


def _freeze(array: object) -> None:
    """Makes an array read-only, and those that it views; does nothing to None."""
    while isinstance(array, np.ndarray):
        array.flags.writeable = False
        array = array.base


def fault_of(data: DomainData, dataset: Dataset, domain: str) -> str | None:
    """What is wrong with a domain's arrays, in a few words; None if they are what the dataset promises."""
    return next(_faults(data, dataset, labelled=domain not in dataset.unlabelled_domains), None)


def _faults(data: DomainData, dataset: Dataset, *, labelled: bool) -> Iterator[str]:
    count = data.x.shape[0]
    has = f"has {count} examples, but"
    task = dataset.task
    if dataset.input.bytes and not are_bytes(data.x):
        held = f"{data.x.dtype} in a {type(data.x).__name__}"
        yield f"has examples of {held}; its `input` promises bytes, an array of uint8"
    if data.y.shape != (count,):
        yield f"{has} labels of shape {data.y.shape}; one each is needed"
    if data.test is not None and (data.test.shape != (count,) or data.test.dtype != np.bool_):
        yield f"{has} marks those for the test in {data.test.dtype} of shape {data.test.shape}"
    if data.groups is not None:
        yield from _group_faults(data.groups, count)
    if data.texts is not None and data.texts.shape != (count,):
        yield f"{has} texts of shape {data.texts.shape}; one each is needed"
    given = data.predictions
    wanted = (count, task.outputs)
    if given is not None and not _are_predictions(given, wanted):
        yield f"has predictions of {given.dtype} and shape {given.shape}; finite floats of shape {wanted} are needed"
    if labelled:
        yield from task.rules.label_faults(data.y, task.classes)
    elif not task.rules.are_unknown(data.y).all():
        yield "has labels, but is one of its `unlabelled_domains`"


def _are_predictions(given: Array, shape: tuple[int, ...]) -> bool:
    if given.shape != shape or given.dtype.kind != "f":
        return False
    return not np.isinf(given).any()  # NaN stands for none


def _group_faults(groups: Array, count: int) -> Iterator[str]:
    if groups.shape != (count,):
        yield f"has {count} examples, but groups of shape {groups.shape}; one each is needed"
    if groups.dtype.kind in "iuU":
        return
    if groups.dtype != object or not all(isinstance(name, str) for name in groups):
        yield f"groups are {groups.dtype}; they are whole numbers or texts"
