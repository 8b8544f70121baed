"""Which experiments, and which methods of them, are the same in several result folders."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from msda_bench.results.frame import load_cells
from msda_bench.results.run_differences import Difference, differences
from msda_bench.suite.plan import Experiment, Method

_SHARED = ("engine", "dataset", "fingerprint", "backbone", "training", "validators")
_PLACE = ("target", "sources", "seed")


@dataclass(frozen=True)
class Part:
    """An experiment of one folder.

    Attributes:
        label: the folder's name.
        experiment: its definition in the plan.
        runs: its rows.
        by_method: the cell of each method's first record, as plain JSON values.
        by_target: that of each target's.
    """

    label: str
    experiment: Experiment
    runs: pd.DataFrame
    by_method: Mapping[str, Mapping[str, Any]]
    by_target: Mapping[str, Mapping[str, Any]]

    @classmethod
    def of(cls, label: str, experiment: Experiment, runs: pd.DataFrame) -> Part:
        """An experiment of a folder with what its records show of its definition.

        Raises:
            StoreError: a record cannot be read.
        """
        recorded = runs[runs["status"] != "missing"]
        firsts = {name: recorded.drop_duplicates(name) for name in ("method", "target")}
        cells = load_cells(pd.concat(firsts.values()).drop_duplicates("key"))
        of_method, of_target = (
            {place: cells[key] for place, key in zip(rows[name], rows["key"], strict=True) if key in cells}
            for name, rows in firsts.items()
        )
        return cls(label, experiment, runs, of_method, of_target)

    @cached_property
    def methods(self) -> Mapping[str, Method]:
        """By name."""
        return {method.name: method for method in self.experiment.methods}

    def rows(self, method: str) -> pd.DataFrame:
        """The rows of one method."""
        return self.runs[(self.runs["method"] == method).to_numpy()]


def alike(
    parts: Sequence[Part], unlike: Callable[[Part, Part], Iterator[Difference]]
) -> tuple[list[list[Part]], list[tuple[str, str, str]]]:
    """Groups parts of which none differs from another in its group.

    Args:
        parts: in the order of the folders.
        unlike: what differs between two.

    Returns:
        The groups; and for each pair of a further group with an earlier one both labels and what differs.
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
    """How two experiments of one name differ beside their methods, targets and seeds."""
    for name in ("dataset", "task"):
        if (first := getattr(one.experiment, name)) != (second := getattr(other.experiment, name)):
            yield Difference(name, first, second)
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
    """How a method of that name differs between two experiments."""
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
    places = ["target", "seed"]
    both = one.rows(name).dropna(subset="key").merge(other.rows(name).dropna(subset="key"), on=places)
    if not found and (both["key_x"] != both["key_y"]).any():
        yield Difference("the cells", "one key", "another")


def _protocol(cell: Mapping[str, Any], *, own: bool) -> dict[str, Any]:
    """What the methods of an experiment share of the protocol; or their own, the optimiser."""
    found = cell.get("training")
    given = found if isinstance(found, dict) else {}
    return {name: value for name, value in given.items() if name.startswith("optimizer") == own}
