"""A domain's examples, checked as its dataset returns them: third-party code, and files from anywhere."""

from __future__ import annotations

import numpy as np

from msda_bench.api import Array, DataError, Dataset, DomainData, Files, Inputs, Task


def load_domain(dataset: Dataset, domain: str, files: Files) -> DomainData:
    """All examples of a domain, read-only, since every split shares them.

    Inputs that are not finite pass: such a run diverges, and training reports it.

    Raises:
        DataError: a file is missing or wrong, or examples and labels are not what the dataset promises.
    """
    data = dataset.load(domain, files)
    fault = _not_bytes(data.x) if dataset.input.bytes else None
    fault = fault or _fault(data, dataset.task, labelled=domain not in dataset.unlabelled_domains)
    if fault is not None:
        raise DataError(
            f"dataset {dataset.name}: domain {domain!r}: {fault}; report it to its author or repair its files"
        )
    for array in (*_arrays(data.x), data.y, data.test, data.groups, data.texts, data.predictions):
        _freeze(array)
    return data


def _arrays(x: Inputs) -> tuple[Array, ...]:
    return (x,) if isinstance(x, np.ndarray) else (x.data, x.indices, x.indptr)


def _freeze(array: object) -> None:
    """Makes an array read-only, and those that it views; does nothing to None."""
    while isinstance(array, np.ndarray):
        array.flags.writeable = False
        array = array.base


def _not_bytes(x: Inputs) -> str | None:
    if isinstance(x, np.ndarray) and x.dtype == np.uint8:
        return None
    held = f"{x.dtype} in a {type(x).__name__}"
    return f"has examples of {held}; its `input` promises bytes, an array of uint8"


def _fault(data: DomainData, task: Task, *, labelled: bool) -> str | None:
    count = data.x.shape[0]
    if data.y.shape != (count,):
        return f"has {count} examples, but labels of shape {data.y.shape}; one each is needed"
    if data.test is not None and (data.test.shape != (count,) or data.test.dtype != np.bool_):
        return f"has {count} examples, but marks those for the test in {data.test.dtype} of shape {data.test.shape}"
    if data.texts is not None and data.texts.shape != (count,):
        return f"has {count} examples, but texts of shape {data.texts.shape}; one each is needed"
    given, wanted = data.predictions, (count, task.outputs)
    if given is not None and (given.shape != wanted or given.dtype.kind != "f" or np.isinf(given).any()):
        return f"has predictions of {given.dtype} and shape {given.shape}; finite floats of shape {wanted} are needed"
    fault = groups_fault(data.groups, count) if data.groups is not None else None
    return fault or _label_fault(data.y, task, labelled=labelled)


def _label_fault(labels: Array, task: Task, *, labelled: bool) -> str | None:
    if labelled:
        return _no_classes(labels, task.classes) if task.kind == "classification" else _no_numbers(labels)
    hidden = labels == -1 if task.kind == "classification" else np.isnan(labels)
    return None if hidden.all() else "has labels, but is one of its `unlabelled_domains`"


def groups_fault(groups: Array, count: int) -> str | None:
    """What is wrong with the groups of `count` examples, in a few words; None if nothing."""
    if groups.shape != (count,):
        return f"has {count} examples, but groups of shape {groups.shape}; one each is needed"
    texts = groups.dtype.kind == "U" or (groups.dtype == object and all(isinstance(name, str) for name in groups))
    return None if texts or groups.dtype.kind in "iu" else f"groups are {groups.dtype}; they are whole numbers or texts"


def _no_classes(labels: Array, classes: int) -> str | None:
    if labels.dtype.kind not in "iu":
        return f"labels are {labels.dtype}; classes are whole numbers"
    outside = (labels < 0) | (labels >= classes)
    if not outside.any():
        return None
    row = int(np.argmax(outside))
    return f"label {labels[row]} of example {row} is none of the {classes} classes, 0..{classes - 1}"


def _no_numbers(labels: Array) -> str | None:
    if labels.dtype.kind not in "fiu":
        return f"labels are {labels.dtype}; regression needs numbers"
    finite = np.isfinite(labels.astype(np.float32))
    if finite.all():
        return None
    row = int(np.argmin(finite))
    return f"label {labels[row]} of example {row} is not finite"
