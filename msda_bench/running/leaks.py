"""Looks for test rows of a suite's runs that training has seen elsewhere: equal or near ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from msda_bench.api import Array, Dataset, DomainData
from msda_bench.component.sizes import is_transductive
from msda_bench.data.near import Matrix, digests, distances, vectors
from msda_bench.data.splits import split
from msda_bench.errors import DataError
from msda_bench.suite.run_spec import RunSpec

SUSPECTED = 0.01
"""The share of a target's test rows from which on training is said to have seen them."""
_ROWS = 2
"""One row may be a coincidence."""
MOST = 2000
"""The maximum number of test rows whose nearest rows are looked for."""
_NEAR = 0.25
"""A row is near if its distance is at most this part of the usual one to the nearest row of the same domain."""
_FEWEST = 8
"""With fewer columns two rows that have nothing to do with each other are near too often."""
_VARIED, _PLAIN = 10, 0.1
"""A dense column of at most so many different numbers counts as this part of one."""


def find_leaks(dataset: Dataset, cells: Sequence[RunSpec], domains: Mapping[str, DomainData]) -> pd.DataFrame:
    """Compares the test rows of each target with its own other rows and with those of the sources, at the first seed.

    Returns:
        A row for each target and domain, with numbers of test rows: `tested` (all) and `compared` (those whose nearest
        rows were looked for); `equal` to a row there and `equal_seen`, to one that is trained on; `near` and
        `near_seen` (equal or near, of those compared; NaN where distances tell nothing); and whether a `leak` is
        suspected.

    Raises:
        DataError: a domain is too small for the split, or rows of two domains have different shapes.
    """
    try:
        rows = vectors({name: data.x for name, data in domains.items()})
    except DataError as error:
        raise DataError(*(f"dataset {dataset.name}: {line}" for line in error.lines)) from None
    prints = {name: digests(data.x) for name, data in domains.items()}
    telling = _columns(rows) >= _FEWEST
    cells_of: dict[str, list[RunSpec]] = {}
    for cell in cells:
        cells_of.setdefault(cell.target, []).append(cell)
    every = []
    for target, mine in cells_of.items():
        used = {target: domains[target]}
        for cell in mine:
            for source in cell.sources:
                used[source] = domains[source]
        seed = min(cell.seed for cell in mine)
        splits = split(dataset, target, used, seed=seed)
        seen = {name: np.zeros(len(data.y), bool) for name, data in used.items()}
        for name, is_seen in seen.items():
            if name != target or not is_transductive(dataset):
                is_seen[splits[name].train] = True
        own = _rows(target, splits[target].test, used, seen, prints, rows, telling=telling)
        every += [{"target": target, "seed": seed, **row} for row in own]
    return pd.DataFrame(every)


def _columns(rows: Mapping[str, Matrix]) -> float:
    """How many columns tell rows apart, by the first domain."""
    first = next(iter(rows.values()))
    if not isinstance(first, np.ndarray):
        return float(first.shape[1])
    count = 0.0
    for column in first.T:
        count += 1 if len(np.unique(column)) > _VARIED else _PLAIN
        if count >= _FEWEST:
            break
    return count


def _rows(
    target: str,
    test: Array,
    used: Mapping[str, DomainData],
    seen: Mapping[str, Array],
    prints: Mapping[str, Array],
    rows: Mapping[str, Matrix],
    *,
    telling: bool,
) -> Iterator[dict[str, Any]]:
    """The numbers of a target's test rows beside each domain, the target itself first."""
    some = test[:MOST]
    queries = rows[target][some]
    mine = prints[target][test]
    usual = np.nan
    if telling:
        usual = _NEAR * float(np.median(distances(queries, rows[target], some)))
    for name in used:
        inside = name == target
        values, counts = np.unique(prints[name], return_counts=True)
        equal = np.isin(mine, values[counts > 1] if inside else values)
        equal_seen = np.isin(mine, prints[name][seen[name]])
        row = {"domain": name, "tested": len(test), "compared": len(some), "near": np.nan, "near_seen": np.nan}
        row |= {"equal": equal.sum(), "equal_seen": equal_seen.sum()}
        leaked = equal_seen[: len(some)]
        if telling:
            near = distances(queries, rows[name], some if inside else None) <= usual
            near_seen = distances(queries, rows[name][seen[name]]) <= usual
            leaked = leaked | near_seen
            row["near"] = (near | equal[: len(some)]).sum()
            row["near_seen"] = leaked.sum()
        row["leak"] = leaked.sum() >= max(_ROWS, SUSPECTED * len(some))
        yield row
