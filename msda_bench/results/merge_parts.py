"""Finds what result folders share: records of one cell, and experiments and methods with equal definitions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple

import pandas as pd

from msda_bench.results.recorded import load_cells
from msda_bench.results.run_differences import Difference, differences, equal_results
from msda_bench.store.files import Faults
from msda_bench.store.record import RESULTS
from msda_bench.suite.plan import Experiment, Method

_SHARED = ("engine", "dataset", "fingerprint", "backbone", "training", "validators")
_PLACE = ("target", "sources", "seed")


class Pool(NamedTuple):
    """The records of several folders.

    Attributes:
        runs: one row per record, by key. Results precede failures, and the first folder precedes the others.
        clashes: cells with different results: `key`, the folders `first` (whose result counts) and `second`, and their
            results in words, `kept` and `other`.
        faults: the faults of all folders, except damaged records that another folder replaces.
    """

    runs: pd.DataFrame
    clashes: pd.DataFrame
    faults: Faults


def pool(labels: Sequence[str], frames: Sequence[pd.DataFrame]) -> Pool:
    """Pools the records of several folders; the first folder has precedence.

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
    clashes = [
        _clashes(kept[kept["label"] == first], results[results["label"] == second])
        for first, second in combinations(labels, 2)
    ]
    faults = [runs.attrs["faults"] for runs in frames]
    damaged = frozenset(key for one in faults for key in one.damaged) - frozenset(results["key"])
    conflicting = frozenset(key for one in faults for key in one.conflicting)
    return Pool(kept.set_index("key"), pd.concat(clashes).drop_duplicates("key"), Faults(damaged, conflicting))


def _clashes(kept: pd.DataFrame, others: pd.DataFrame) -> pd.DataFrame:
    """The cells for which another folder's result differs from the result that counts."""
    kept, others = kept[kept["key"].isin(others["key"])], others[others["key"].isin(kept["key"])]
    equal = equal_results(kept, others)
    ours, theirs = (runs[~runs["key"].isin(equal)].drop_duplicates("key").set_index("key") for runs in (kept, others))
    found = [
        (key, one["label"], other["label"], _in_words(one), _in_words(other))
        for (key, one), (_, other) in zip(ours.iterrows(), theirs.loc[ours.index].iterrows(), strict=True)
    ]
    return pd.DataFrame(found, columns=["key", "first", "second", "kept", "other"])


def _in_words(run: pd.Series[Any]) -> str:
    if run["status"] != "ok":
        return str(run["status"])
    if pd.notna(run["n_correct"]):
        return f"{run['n_correct']}/{run['n_test']} correct"
    return f"squared error {run['sum_squared_error']:.6g} over {run['n_test']}"


@dataclass(frozen=True)
class Part:
    """An experiment of one folder, with the folder's label and the experiment's rows."""

    label: str
    experiment: Experiment
    runs: pd.DataFrame

    @cached_property
    def by_method(self) -> dict[str, dict[str, Any]]:
        """The cell of each method's first record, which defines the method."""
        return self._first_cells("method")

    @cached_property
    def by_target(self) -> dict[str, dict[str, Any]]:
        """The cell of each target's first record."""
        return self._first_cells("target")

    def _first_cells(self, name: str) -> dict[str, dict[str, Any]]:
        firsts = self.runs[self.runs["status"] != "missing"].drop_duplicates(name)
        cells = load_cells(firsts)
        return {place: cells[key] for place, key in zip(firsts[name], firsts["key"], strict=True) if key in cells}

    @cached_property
    def methods(self) -> Mapping[str, Method]:
        """The methods by name."""
        return {method.name: method for method in self.experiment.methods}

    def rows(self, method: str) -> pd.DataFrame:
        """The rows of one method."""
        return self.runs[(self.runs["method"] == method).to_numpy()]


def alike(
    parts: Sequence[Part], unlike: Callable[[Part, Part], Iterator[Difference]]
) -> tuple[list[list[Part]], list[tuple[str, str, str]]]:
    """Groups parts, in the order of the folders, so that no two parts of a group are `unlike`.

    Returns:
        The groups; and for each pair of groups the labels of two parts, and their differences in words.
    """
    groups: list[list[Part]] = []
    apart: list[tuple[str, str, str]] = []
    for part in parts:
        reasons = [[(other, found) for other in group if (found := list(unlike(other, part)))] for group in groups]
        home = next((group for group, found in zip(groups, reasons, strict=True) if not found), None)
        if home is None:
            apart += [(other.label, part.label, _listed(other, part, found)) for (other, found), *_ in reasons]
            groups.append([part])
        else:
            home.append(part)
    return groups, apart


def _listed(one: Part, other: Part, found: Sequence[Difference]) -> str:
    return "; ".join(f"{what}: {one.label} {first}, {other.label} {second}" for what, first, second in found)


def other_definition(one: Part, other: Part) -> Iterator[Difference]:
    """The differences between two experiments with the same name, other than their methods, targets and seeds."""
    for name in ("dataset", "task"):
        if (first := getattr(one.experiment, name)) != (second := getattr(other.experiment, name)):
            yield Difference(name, first, second)
            return
    shown = one.experiment.measure, other.experiment.measure
    if shown[0] != shown[1]:
        yield Difference("metric", shown[0].name, shown[1].name)
        return
    if one.by_method and other.by_method:
        cells = (next(iter(part.by_method.values())) for part in (one, other))
        ours, theirs = (
            {name: cell.get(name) for name in _SHARED} | {"training": _protocol(cell, own=False)} for cell in cells
        )
        yield from differences(ours, theirs)
    common = [target for target in one.by_target if target in other.by_target]
    ours, theirs = ({target: part.by_target[target].get("sources") for target in common} for part in (one, other))
    yield from differences(ours, theirs, "sources")


def other_recipe(name: str, one: Part, other: Part) -> Iterator[Difference]:
    """The differences between the methods of this name in two experiments."""
    methods = one.methods[name], other.methods[name]
    if methods[0].reference != methods[1].reference:
        yield Difference("reference", *(str(method.reference).lower() for method in methods))
    if name in one.by_method and name in other.by_method:
        ours, theirs = (
            {key: value for key, value in part.by_method[name].items() if key not in (*_SHARED, *_PLACE)}
            | {"training": _protocol(part.by_method[name], own=True)}
            for part in (one, other)
        )
    else:
        ours, theirs = ({"recipe": method.recipe} for method in methods)
    found = list(differences(ours, theirs))
    yield from found
    both = one.rows(name).dropna(subset="key").merge(other.rows(name).dropna(subset="key"), on=["target", "seed"])
    if not found and (both["key_x"] != both["key_y"]).any():
        yield Difference("the cells", "one key", "another")


def _protocol(cell: Mapping[str, Any], *, own: bool) -> dict[str, Any]:
    """The part of the protocol that the methods of an experiment share, or with `own` the method's optimiser."""
    found = cell.get("training")
    given = found if isinstance(found, dict) else {}
    return {name: value for name, value in given.items() if name.startswith("optimizer") == own}
