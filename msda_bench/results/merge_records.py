"""The records of several result folders as one, and where they contradict each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import pandas as pd

from msda_bench.results.run_differences import equal_results
from msda_bench.store.names import Faults

RESULTS = ("ok", "diverged")
"""What running a cell again would repeat; all else is a failure."""


class Clash(NamedTuple):
    """Two results of one cell.

    Attributes:
        first: the folder whose result counts.
        second: the other.
        kept: the result that counts, in words.
        other: the one that does not.
    """

    first: str
    second: str
    kept: str
    other: str


class Pool(NamedTuple):
    """The records of several folders.

    Attributes:
        runs: one row a record, by key; where there are several the first folder's, and a result rather than a failure.
        clashes: cells with results that differ, by key.
        faults: those of all folders, but for damaged records that another folder makes up for.
    """

    runs: pd.DataFrame
    clashes: Mapping[str, Clash]
    faults: Faults


def pool(labels: Sequence[str], frames: Sequence[pd.DataFrame]) -> Pool:
    """Brings the records of all folders together.

    Args:
        labels: what the folders are called.
        frames: their runs, that of the folder that counts first at the front.

    Raises:
        StoreError: a record cannot be read.
    """
    every = [
        (runs if "folder" in runs else runs.assign(folder=runs.attrs["folder"])).assign(label=label)
        for label, runs in zip(labels, frames, strict=True)
    ]
    rows = pd.concat(every, ignore_index=True)
    rows = rows[rows["status"] != "missing"]
    results = rows[rows["status"].isin(RESULTS)]
    kept = pd.concat([results, rows.drop(results.index)]).drop_duplicates("key")
    clashes: dict[str, Clash] = {}
    for first, second in combinations(labels, 2):
        for key, clash in _between(kept[kept["label"] == first], results[results["label"] == second]):
            clashes.setdefault(key, clash)
    faults = [runs.attrs["faults"] for runs in frames]
    damaged = frozenset(key for one in faults for key in one.damaged) - frozenset(results["key"])
    conflicting = frozenset(key for one in faults for key in one.conflicting)
    return Pool(kept.set_index("key"), clashes, Faults(damaged, conflicting))


def _between(kept: pd.DataFrame, others: pd.DataFrame) -> Iterator[tuple[str, Clash]]:
    """Cells of which one folder's result counts and another's is not the same."""
    kept, others = kept[kept["key"].isin(others["key"])], others[others["key"].isin(kept["key"])]
    equal = equal_results(kept, others)
    for (key, one), (_, other) in zip(*(_by_key(side, equal) for side in (kept, others)), strict=True):
        yield key, Clash(one["label"], other["label"], _in_words(one), _in_words(other))


def _by_key(runs: pd.DataFrame, without: frozenset[str]) -> Iterator[tuple[str, pd.Series[Any]]]:
    rows = runs[~runs["key"].isin(without)].drop_duplicates("key").sort_values("key")
    return zip(rows["key"], (row for _, row in rows.iterrows()), strict=True)


def _in_words(run: pd.Series[Any]) -> str:
    if run["status"] != "ok":
        return str(run["status"])
    if pd.notna(run["n_correct"]):
        return f"{run['n_correct']}/{run['n_test']} correct"
    return f"squared error {run['sum_squared_error']:.6g} over {run['n_test']}"
