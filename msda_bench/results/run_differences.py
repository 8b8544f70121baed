"""Finds differences between paired runs of two folders: settings, versions, and results."""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterator
from itertools import chain
from typing import Any, NamedTuple

import pandas as pd

from msda_bench.errors import printable
from msda_bench.results.notes import which_runs
from msda_bench.results.recorded import VERSION, load_cells, read_record, stored
from msda_bench.store import Store
from msda_bench.store.record import same_result

_PROVENANCE = ("python", "torch", "numpy", "numba", "platform", "device", "device_name", "stack")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_SHORT = 12
_ABSENT = object()
"""Stands for a missing key: a cell that is older than a field has its default."""


class Difference(NamedTuple):
    """A difference between A and B: a place in the cell, such as `training.epochs`, or `made with ...`."""

    what: str
    a: str
    b: str


def differences(a: Any, b: Any, place: str = "") -> Iterator[Difference]:
    """The places at which two JSON values differ; components with different names differ as a whole."""
    if a == b:  # fast, and true of most values
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
    """The differences between paired runs of equal index, in settings, then in versions: `what, a, b, runs`."""
    recorded = (a["status"] != "missing") & (b["status"] != "missing")
    a, b = a[recorded], b[recorded]
    rows: dict[Difference, list[Hashable]] = {}
    for row, difference in chain(_of_cells(a, b), _of_versions(a, b)):
        rows.setdefault(difference, []).append(row)
    changed = [(*difference, which_runs(a.loc[where], a)) for difference, where in rows.items()]
    return pd.DataFrame(changed, columns=[*Difference._fields, "runs"])


def _of_cells(a: pd.DataFrame, b: pd.DataFrame) -> Iterator[tuple[Hashable, Difference]]:
    """Differences between cells; runs with equal keys have equal cells and are skipped."""
    unlike = a["key"] != b["key"]
    ours, theirs = load_cells(a[unlike]), load_cells(b[unlike])
    for row, key, other_key in zip(a.index[unlike], a.loc[unlike, "key"], b.loc[unlike, "key"], strict=True):
        for difference in differences(ours.get(key), theirs.get(other_key)):
            yield row, difference


def _of_versions(a: pd.DataFrame, b: pd.DataFrame) -> Iterator[tuple[Hashable, Difference]]:
    """Differences between versions; records without versions are skipped."""
    names = {*_PROVENANCE, *(name for name in (*a, *b) if name.startswith(VERSION))}
    for name in sorted(names, key=lambda name: name.removeprefix(VERSION)):
        ours, theirs = _versions(a, name), _versions(b, name)
        unlike = ours.notna() & theirs.notna() & (ours != theirs)
        what = f"made with {name.removeprefix(VERSION)}"
        for row, version, other_version in zip(ours.index[unlike], ours[unlike], theirs[unlike], strict=True):
            yield row, Difference(what, printable(version) or "none", printable(other_version) or "none")


def _versions(runs: pd.DataFrame, name: str) -> pd.Series[Any]:
    """The versions of a distribution: empty if a record reports none, missing if it reports nothing."""
    versions = runs[name].astype(object) if name in runs else pd.Series(None, runs.index, dtype=object)
    if name.startswith(VERSION):  # a record that lists no distribution reports nothing
        listed = runs["distributions"].astype(object).fillna("") != ""
        versions = versions.mask(versions.isna() & listed, "")
    return versions


def equal_results(a: pd.DataFrame, b: pd.DataFrame) -> frozenset[str]:
    """Keys of the cells whose results in both frames are equal to the last bit, curves included.

    Raises:
        StoreError: a record cannot be read.
    """
    ours, theirs = ({key: store for _, key, store in stored(runs)} for runs in (a, b))
    outcomes = [dict(zip(runs["key"], _outcomes(runs), strict=True)) for runs in (a, b)]
    alike = (key for key in ours if key in theirs and outcomes[0][key] == outcomes[1][key])
    return frozenset(key for key in alike if _same_result(key, ours[key], theirs[key]))


def _outcomes(runs: pd.DataFrame) -> Iterator[tuple[Any, ...]]:
    columns = runs[["status", "n_test", "n_correct", "sum_squared_error"]].astype(object)
    return columns.where(columns.notna(), None).itertuples(index=False, name=None)


def _same_result(key: str, one: Store, other: Store) -> bool:
    return same_result(*(read_record(store, key) for store in (one, other)))
