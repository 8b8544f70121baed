"""What differs between runs of one place in two folders: what was asked for, what it was made with, and the result."""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterable, Iterator
from typing import Any, NamedTuple, TypeAlias

import pandas as pd

from msda_bench.errors import printable
from msda_bench.results.frame import VERSION, load_cells, read_records
from msda_bench.results.notes import which_runs
from msda_bench.store.codec import same_result

_PROVENANCE = ("python", "torch", "numpy", "numba", "platform", "device", "device_name", "stack")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_SHORT = 12
_ABSENT = object()
"""A missing key: what came later than the cell is left out at its default."""


class Difference(NamedTuple):
    """Something that is not the same on both sides.

    Attributes:
        what: a place in the cell, such as `training.epochs`, or what the run was made with.
        a: its value in A.
        b: its value in B.
    """

    what: str
    a: str
    b: str


_Rows: TypeAlias = list[Hashable]


def differences(a: Any, b: Any, place: str = "") -> Iterator[Difference]:
    """Where two JSON values are not the same; components of different names differ as a whole."""
    if a == b:  # asked of the whole first, which is fast
        return
    if isinstance(a, dict) and isinstance(b, dict) and a.get("name") == b.get("name"):
        for key in sorted(a.keys() | b.keys()):
            yield from differences(a.get(key, _ABSENT), b.get(key, _ABSENT), f"{place}.{key}" if place else key)
    else:
        yield Difference(place, _short(a), _short(b))


def _short(value: Any) -> str:
    if value is _ABSENT:
        return "default"
    if isinstance(value, list):
        return printable(", ".join(map(_short, value))) or "none"
    if isinstance(value, dict) and "name" in value and isinstance(params := value.get("params", {}), dict):
        listed = ", ".join(f"{name}={_short(param)}" for name, param in sorted(params.items()))
        return printable(f"{value['name']}({listed})" if listed else value["name"])
    if isinstance(value, str):
        return value[:_SHORT] if _DIGEST.fullmatch(value) else printable(value)
    return printable(json.dumps(value, sort_keys=True)) if value is not None else "none"


def changes(a: pd.DataFrame, b: pd.DataFrame) -> pd.DataFrame:
    """What differs between paired runs: first what changes their numbers, then what they were made with.

    Args:
        a: runs of A, in table order.
        b: the runs of B beside them, with the same index; a run without a record on either side shows nothing.

    Returns:
        `what, a, b` and `runs`: where, in words, of the runs that have a record on both sides.
    """
    recorded = (a["status"] != "missing") & (b["status"] != "missing")
    a, b = a[recorded], b[recorded]
    found = {**_by_difference(_of_cells(a, b)), **_by_difference(_of_versions(a, b))}
    return pd.DataFrame(
        [(*difference, which_runs(a.loc[rows], a)) for difference, rows in found.items()],
        columns=["what", "a", "b", "runs"],
    )


def _by_difference(found: Iterable[tuple[Hashable, Difference]]) -> dict[Difference, _Rows]:
    rows: dict[Difference, _Rows] = {}
    for row, difference in found:
        rows.setdefault(difference, []).append(row)
    return rows


def _of_cells(a: pd.DataFrame, b: pd.DataFrame) -> Iterator[tuple[Hashable, Difference]]:
    """Runs of one key are of one cell, which need not be read."""
    unlike = a["key"] != b["key"]
    ours, theirs = load_cells(a[unlike]), load_cells(b[unlike])
    for row, one, other in zip(a.index[unlike], a.loc[unlike, "key"], b.loc[unlike, "key"], strict=True):
        for difference in differences(ours.get(one), theirs.get(other)):
            yield row, difference


def _of_versions(a: pd.DataFrame, b: pd.DataFrame) -> Iterator[tuple[Hashable, Difference]]:
    """Nothing where a record does not say what its run was made with."""
    names = {*_PROVENANCE, *(name for name in (*a, *b) if name.startswith(VERSION))}
    for name in sorted(names, key=lambda name: name.removeprefix(VERSION)):
        for row, one, other in zip(a.index, _versions(a, name), _versions(b, name), strict=True):
            if one is not None and other is not None and one != other:
                what = f"made with {name.removeprefix(VERSION)}"
                yield row, Difference(what, printable(one) or "none", printable(other) or "none")


def _versions(runs: pd.DataFrame, name: str) -> Iterator[str | None]:
    """Empty where a record says that there was none, None where it does not say."""
    values = runs[name].astype(object) if name in runs else [None] * len(runs)
    absent = "" if name.startswith(VERSION) else None
    for value, distributions in zip(values, runs["distributions"].astype(object), strict=True):
        # A record without any distribution says nothing of one of them.
        yield str(value) if pd.notna(value) else absent if pd.notna(distributions) and distributions else None


def equal_results(a: pd.DataFrame, b: pd.DataFrame) -> frozenset[str]:
    """Keys of the cells whose result is the same in both frames, to the last bit and curves included.

    Raises:
        StoreError: a record cannot be read.
    """
    common = set(a["key"].dropna()) & set(b["key"].dropna())
    sides = [side[side["key"].isin(common)].drop_duplicates("key").sort_values("key") for side in (a, b)]
    pairs = zip(*map(read_records, sides), strict=False)  # one by one: all curves are too much to keep
    return frozenset(one.key for (_, one), (_, other) in pairs if one.key == other.key and same_result(one, other))
