"""Looks through the rows of a dataset for what no training is needed to see: copies, order, and what tells too much."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from msda_bench.api import Array, Dataset, DomainData
from msda_bench.component.dataset import drops_duplicates
from msda_bench.data.near import digests
from msda_bench.functional import codes_of, share_told
from msda_bench.results.words import first_of

_FEWEST = 20
"""Of fewer rows of a domain neither order nor columns are judged."""
_ORDERED = 0.5
"""Neighbours with the same label, from none more than in a random order, 0, to all, 1."""
_TOLD = 0.75
"""Rows told by one column, from none more than the most frequent class, 0, to all, 1."""
_TOLD_BY_GAPS = 0.25
"""The same, by which values are missing."""
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
    if dataset.task.has_classes:
        lines += _lacking(known, dataset.task.classes)
        lines += _ordered(known)
    columns = {name: _columns(data) for name, data in domains.items()}
    if all(rows is not None and len(rows) >= _FEWEST for rows in columns.values()):
        inputs = {name: rows for name, rows in columns.items() if rows is not None}
        labels = {name: data.y for name, data in known.items()} if dataset.task.has_classes else {}
        lines += _constant(inputs)
        lines += _telling(inputs, labels)
    return lines


def _copies(dataset: Dataset, domains: Mapping[str, DomainData]) -> Iterator[str]:
    names = list(domains)
    _, prints = np.unique(np.concatenate([digests(data.x) for data in domains.values()]), return_inverse=True)
    prints = prints.reshape(-1)
    places = np.repeat(np.arange(len(names)), [len(data.y) for data in domains.values()])
    labels = np.concatenate([data.y for data in domains.values()])
    is_known = ~np.isin(places, [names.index(name) for name in dataset.unlabelled_domains if name in domains])
    pairs = prints * len(names) + places
    _, first = np.unique(pairs, return_index=True)
    again = np.ones(len(pairs), bool)
    again[first] = False
    if again.any():
        sizes = [f" of {len(data.y)}" for data in domains.values()]
        remedy = "" if drops_duplicates(dataset) else "; `duplicates: drop` leaves them out"
        where, agreement = _counted(names, places[again], sizes), _agreement(pairs[is_known], labels[is_known])
        yield f"copies: rows that equal an earlier one of their domain: {where}; {agreement}{remedy}"
    between = _in_several(prints, places)
    if between.any():
        grouped = any(data.groups is not None for data in domains.values())
        remedy = "" if grouped else "; if they are of one thing, name it as their group"
        of_known = between & is_known
        where = _counted(names, places[between], [""] * len(names))
        agreement = _agreement(prints[of_known], labels[of_known])
        yield f"copies: rows that equal one of another domain: {where}; {agreement}{remedy}"


def _counted(names: Sequence[str], places: Array, sizes: Sequence[str]) -> str:
    """How many rows each domain has, but for those that have none."""
    counts = np.bincount(places, minlength=len(names)).tolist()
    said = zip(names, counts, sizes, strict=True)
    return first_of(f"{name} {count}{size}" for name, count, size in said if count)


def _agreement(prints: Array, labels: Array) -> str:
    """Whether equal rows have the same label."""
    differ = int(_in_several(prints, labels).sum())
    return f"{differ} of these and their originals have different labels" if differ else "equal rows have equal labels"


def _in_several(prints: Array, of: Array) -> Array:
    """Which rows equal a row with another value of `of`."""
    different, place = np.unique(prints, return_inverse=True)
    values, value = np.unique(of, return_inverse=True)
    pairs = np.unique(place.reshape(-1) * len(values) + value.reshape(-1))
    counts = np.bincount(pairs // max(1, len(values)), minlength=len(different))
    several: Array = counts[place.reshape(-1)] > 1
    return several


def _lacking(domains: Mapping[str, DomainData], classes: int) -> Iterator[str]:
    counts = {name: np.bincount(data.y, minlength=classes) for name, data in domains.items()}
    lacking = {name: np.flatnonzero(of == 0) for name, of in counts.items() if (of == 0).any()}
    if lacking:
        where = first_of(f"{name} class {', '.join(map(str, of))}" for name, of in lacking.items())
        yield f"classes: domains without a row of some class: {where}; methods answer it there all the same"


def _ordered(domains: Mapping[str, DomainData]) -> Iterator[str]:
    shares = {name: _neighbours(data.y) for name, data in domains.items() if len(data.y) >= _FEWEST}
    sorted_ones = {name: of for name, of in shares.items() if of[0] - of[1] > _ORDERED * (1 - of[1])}
    if sorted_ones:
        where = first_of(f"{name} {100 * of[0]:.0f} % ({100 * of[1]:.0f} %)" for name, of in sorted_ones.items())
        what = f"rows with the label of the row before, beside those in a random order: {where}"
        yield f"order: {what}; runs draw their splits at random, and so should you"


def _neighbours(y: Array) -> tuple[float, float]:
    """The share of rows with the label of the row before, and that in a random order."""
    shares = np.unique(y, return_counts=True)[1] / len(y)
    return float((y[1:] == y[:-1]).mean()), float((shares**2).sum())


def _columns(data: DomainData) -> Array | None:
    """Rows of numbers (n, d); None for anything else."""
    if not isinstance(data.x, np.ndarray) or data.x.dtype.kind != "f":
        return None
    return data.x.reshape(len(data.x), -1)


def _constant(domains: Mapping[str, Array]) -> Iterator[str]:
    varying = {name: _varying(x) for name, x in domains.items()}
    ever = np.any([*varying.values()], axis=0)
    alone = {name: np.flatnonzero(ever & ~of) for name, of in varying.items()}
    found = {name: of for name, of in alone.items() if len(of)}
    if found:
        where = first_of(f"{name} {len(of)} (first {of[0]})" for name, of in found.items())
        what = f"inputs that do not vary in a domain, but in another: {where} of {len(ever)}"
        yield f"constant: {what}; they tell the domain"


def _varying(x: Array) -> Array:
    """Which columns have two different numbers."""
    missing = np.isnan(x)
    varying: Array = np.where(missing, np.inf, x).min(0) < np.where(missing, -np.inf, x).max(0)
    return varying


def _telling(domains: Mapping[str, Array], labels: Mapping[str, Array]) -> Iterator[str]:
    """Lines on what tells the domain, then the class."""
    places = np.repeat(np.arange(len(domains)), [len(x) for x in domains.values()])
    yield from _told(np.concatenate([*domains.values()]), places, "domain")
    if labels:
        rows = np.concatenate([domains[name] for name in labels])
        yield from _told(rows, np.concatenate([*labels.values()]), "class")


def _told(rows: Array, of: Array, what: str) -> Iterator[str]:
    usual = float(np.bincount(of).max() / len(of))
    by_gaps = _told_by_gaps(rows, of)
    if by_gaps - usual > _TOLD_BY_GAPS * (1 - usual):
        yield f"telling: which values are missing alone tells the {what} of {_shares(by_gaps, usual)}"
    chosen = np.unique(np.linspace(0, rows.shape[1] - 1, _COLUMNS).astype(int)).tolist()
    shares = {column: share_told(codes_of(rows[:, column]), of) for column in chosen}
    best = max(chosen, key=shares.__getitem__)
    if shares[best] > by_gaps and shares[best] - usual > _TOLD * (1 - usual):
        yield f"telling: input {best} alone tells the {what} of {_shares(shares[best], usual)}"


def _told_by_gaps(rows: Array, of: Array) -> float:
    """The share of rows whose class is told by which of their numbers are missing; 0 if none are."""
    missing = np.isnan(rows)
    if not missing.any():
        return 0.0
    _, pattern = np.unique(np.packbits(missing, axis=1), axis=0, return_inverse=True)
    return share_told(pattern.reshape(-1), of)


def _shares(share: float, usual: float) -> str:
    return f"{100 * share:.0f} % of the rows (always the most frequent: {100 * usual:.0f} %)"
