"""Looks through the rows of a dataset for what no training is needed to see: copies, order, and what tells too much."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from msda_bench.api import Array, Dataset, DomainData
from msda_bench.component.dataset import drops_duplicates
from msda_bench.data.near import digests
from msda_bench.functional import Told, codes_of, order_told, told_by, told_by_neighbours
from msda_bench.results.words import first_of

_FEWEST = 20
"""The order and the columns of a domain with fewer rows are not judged."""
_ORDERED = 0.5
"""How much more neighbours with the same label than in a random order are reported; see `Told.exceeds`."""
_TOLD = 0.75
"""How much one column must tell to be reported."""
_TOLD_BY_GAPS = 0.25
"""How much it must tell which values are missing."""
_FOLLOWED = 0.98
"""How well one column must put the rows of a regression in the order of their labels; see `order_told`."""
_COLUMNS = 512
"""The maximum number of columns that are looked at; they are evenly spaced."""


def find_flaws(dataset: Dataset, domains: Mapping[str, DomainData]) -> list[str]:
    """A line on each flaw of the rows, whatever the split, with numbers; inputs and classes are counted from 0.

    These are copies within domains and between them, and whether their labels agree; classes that a domain lacks; rows
    in the order of the labels; inputs that do not vary in a domain alone; and one input, or which values are missing,
    that tells the domain or the class.
    """
    known = {name: data for name, data in domains.items() if name not in dataset.unlabelled_domains}
    lines = [*_copies(dataset, domains)]
    labels: dict[str, Array] = {}
    if dataset.task.has_classes:
        labels = {name: data.y for name, data in known.items()}
        lines += _lacking(labels, dataset.task.classes)
        lines += _ordered(labels)
    inputs: dict[str, Array] = {}
    for name, data in domains.items():
        columns = _columns(data)
        if columns is not None and len(columns) >= _FEWEST:
            inputs[name] = columns
    if len(inputs) == len(domains):
        lines += _constant(inputs)
        lines += _telling(inputs, labels)
        if not dataset.task.has_classes:
            lines += _followed(inputs, {name: data.y for name, data in known.items()})
    return lines


def _copies(dataset: Dataset, domains: Mapping[str, DomainData]) -> Iterator[str]:
    names = list(domains)
    sizes = [len(data.y) for data in domains.values()]
    columns = {
        "digest": np.concatenate([digests(data.x) for data in domains.values()]),
        "domain": np.repeat(np.arange(len(names)), sizes),
        "label": np.concatenate([data.y for data in domains.values()]),
    }
    rows = pd.DataFrame(columns)
    unlabelled = [number for number, name in enumerate(names) if name in dataset.unlabelled_domains]
    is_known = ~rows["domain"].isin(unlabelled)
    again = rows.duplicated(["digest", "domain"])
    if again.any():
        where = _counted(rows[again], names, [f" of {size}" for size in sizes])
        agreement = _agreement(rows[is_known], ["digest", "domain"])
        remedy = "" if drops_duplicates(dataset) else "; `duplicates: drop` leaves them out"
        yield f"copies: rows that equal an earlier one of their domain: {where}; {agreement}{remedy}"
    between = _in_several(rows, ["digest"], "domain")
    if between.any():
        where = _counted(rows[between], names, [""] * len(names))
        agreement = _agreement(rows[between & is_known], ["digest"])
        grouped = any(data.groups is not None for data in domains.values())
        remedy = "" if grouped else "; if they are of one thing, name it as their group"
        yield f"copies: rows that equal one of another domain: {where}; {agreement}{remedy}"


def _counted(rows: pd.DataFrame, names: Sequence[str], sizes: Sequence[str]) -> str:
    """The number of rows of each domain that has any, followed by its size in words."""
    counts = np.bincount(rows["domain"], minlength=len(names)).tolist()
    texts = []
    for name, count, size in zip(names, counts, sizes, strict=True):
        if count:
            texts.append(f"{name} {count}{size}")
    return first_of(texts)


def _agreement(rows: pd.DataFrame, equal: list[str]) -> str:
    """Whether rows that are equal in these columns have the same label."""
    differ = int(_in_several(rows, equal, "label").sum())
    if not differ:
        return "equal rows have equal labels"
    return f"{differ} of these and their originals have different labels"


def _in_several(rows: pd.DataFrame, equal: list[str], column: str) -> pd.Series[bool]:
    """Which rows equal, in some columns, a row with another value in this one."""
    return rows.groupby(equal)[column].transform("nunique", dropna=False) > 1


def _lacking(labels: Mapping[str, Array], classes: int) -> Iterator[str]:
    lacking = []
    for name, y in labels.items():
        absent = np.flatnonzero(np.bincount(y, minlength=classes) == 0)
        if len(absent):
            lacking.append(f"{name} class {', '.join(map(str, absent))}")
    if lacking:
        where = first_of(lacking)
        yield f"classes: domains without a row of some class: {where}; methods answer it there all the same"


def _ordered(labels: Mapping[str, Array]) -> Iterator[str]:
    in_order = []
    for name, y in labels.items():
        if len(y) < _FEWEST:
            continue
        told = told_by_neighbours(y)
        if told.exceeds(_ORDERED):
            in_order.append(f"{name} {100 * told.share:.0f} % ({100 * told.usual:.0f} %)")
    if in_order:
        what = f"rows with the label of the row before, beside those in a random order: {first_of(in_order)}"
        yield f"order: {what}; runs draw their splits at random, and so should you"


def _columns(data: DomainData) -> Array | None:
    """Rows of numbers (n, d); None for anything else."""
    if not isinstance(data.x, np.ndarray) or data.x.dtype.kind != "f":
        return None
    return data.x.reshape(len(data.x), -1)


def _constant(domains: Mapping[str, Array]) -> Iterator[str]:
    varying = {name: _varying(x) for name, x in domains.items()}
    ever = np.any([*varying.values()], axis=0)
    found = []
    for name, is_varying in varying.items():
        constant = np.flatnonzero(ever & ~is_varying)
        if len(constant):
            found.append(f"{name} {len(constant)} (first {constant[0]})")
    if found:
        what = f"inputs that do not vary in a domain, but in another: {first_of(found)} of {len(ever)}"
        yield f"constant: {what}; they tell the domain"


def _varying(x: Array) -> Array:
    """Which columns have two different numbers."""
    missing = np.isnan(x)
    least = np.where(missing, np.inf, x).min(0)
    greatest = np.where(missing, -np.inf, x).max(0)
    varying: Array = least < greatest
    return varying


def _telling(domains: Mapping[str, Array], labels: Mapping[str, Array]) -> Iterator[str]:
    """Lines on what tells the domain, then the class."""
    places = np.repeat(np.arange(len(domains)), [len(x) for x in domains.values()])
    rows = np.concatenate([*domains.values()])
    yield from _telling_about(rows, places, "domain")
    if labels:
        rows = np.concatenate([domains[name] for name in labels])
        classes = np.concatenate([*labels.values()])
        yield from _telling_about(rows, classes, "class")


def _telling_about(rows: Array, of: Array, what: str) -> Iterator[str]:
    by_gaps = told_by(_gap_patterns(rows), of)
    if by_gaps.exceeds(_TOLD_BY_GAPS):
        yield f"telling: which values are missing alone tells the {what} of {_text(by_gaps)}"
    told = {int(column): told_by(codes_of(rows[:, column]), of) for column in _chosen(rows)}
    best = max(told, key=told.__getitem__)
    if told[best].share > by_gaps.share and told[best].exceeds(_TOLD):
        yield f"telling: input {best} alone tells the {what} of {_text(told[best])}"


def _followed(domains: Mapping[str, Array], labels: Mapping[str, Array]) -> Iterator[str]:
    """The input whose numbers follow the labels of a regression best, such as a copy of them, if it follows closely."""
    rows = np.concatenate([domains[name] for name in labels])
    places = np.repeat(np.arange(len(labels)), [len(y) for y in labels.values()])
    of = np.concatenate([*labels.values()])
    told = {int(column): order_told(rows[:, column], of, places) for column in _chosen(rows)}
    best = max(told, key=told.__getitem__)
    if told[best] > _FOLLOWED:
        where = f"input {best} puts the rows of a domain in the order of their labels"
        yield f"telling: {where} (rank correlation {told[best]:.2f})"


def _chosen(rows: Array) -> Array:
    """The columns of rows (n, d) that are looked at."""
    return np.unique(np.linspace(0, rows.shape[1] - 1, _COLUMNS).astype(int))


def _gap_patterns(rows: Array) -> Array:
    """(n,) whole numbers: rows in which the same numbers are missing have the same."""
    missing = np.packbits(np.isnan(rows), axis=1)
    _, pattern = np.unique(missing, axis=0, return_inverse=True)
    return pattern.reshape(-1)


def _text(told: Told) -> str:
    return f"{100 * told.share:.0f} % of the rows (always the most frequent: {100 * told.usual:.0f} %)"
