"""Which experiments, and which methods of them, are the same in several result folders."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msda_bench.report.changes import differences
from msda_bench.report.folder import Folder
from msda_bench.suite.plan import Experiment, Method

_SHARED = ("engine", "dataset", "fingerprint", "backbone", "training", "validators")
_PLACE = ("target", "sources", "seed")


@dataclass(frozen=True)
class Part:
    """An experiment of one folder.

    Attributes:
        label: the folder's.
        table: the experiment.
        keys: its cells' keys, by method, target and seed.
        shared: what all its cells have in common beside their method, from its first record; None without any.
        sources: by target, where there is a record.
        recipes: what makes each method, from its first record; nothing for a method without any.
    """

    label: str
    table: Experiment
    keys: Mapping[tuple[str, str, int], str]
    shared: Mapping[str, Any] | None
    sources: Mapping[str, Any]
    recipes: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Apart:
    """Two parts, or two of their methods, that are not the same.

    Attributes:
        first: the label of the one.
        second: the label of the other.
        why: what differs.
    """

    first: str
    second: str
    why: str


def part_of(label: str, folder: Folder, table: Experiment) -> Part:
    """An experiment of a folder with what its records tell of its definition."""
    keys = {
        (cell.method, cell.target, cell.seed): cell.key for cell in folder.plan.cells if cell.experiment == table.name
    }
    shared: dict[str, Any] | None = None
    sources: dict[str, Any] = {}
    recipes: dict[str, dict[str, Any]] = {}
    for (method, target, _), key in keys.items():
        cell = folder.records[key].cell if key in folder.records else None
        if cell is not None:
            shared = shared or {**{name: cell.get(name) for name in _SHARED}, "training": _protocol(cell, own=False)}
            sources.setdefault(target, cell.get("sources"))
            own = {name: cell[name] for name in cell if name not in (*_SHARED, *_PLACE)}
            recipes.setdefault(method, {**own, "training": _protocol(cell, own=True)})
    return Part(label, table, keys, shared, sources, recipes)


def _protocol(cell: Mapping[str, Any], *, own: bool) -> dict[str, Any]:
    """What the methods of an experiment share of the protocol; or their own, the optimiser."""
    found = cell.get("training")
    given = found if isinstance(found, dict) else {}
    return {name: value for name, value in given.items() if name.startswith("optimizer") == own}


def alike(parts: Sequence[Part], why: Callable[[Part, Part], str]) -> tuple[list[list[Part]], list[Apart]]:
    """Groups parts of which none differs from another in its group.

    Args:
        parts: in the order of the folders.
        why: what differs between two; empty if nothing does.

    Returns:
        The groups, and why each that is not the first one is one of its own.
    """
    groups: list[list[Part]] = []
    apart: list[Apart] = []
    for part in parts:
        reasons = [[(other, text) for other in group if (text := why(other, part))] for group in groups]
        home = next((group for group, found in zip(groups, reasons, strict=True) if not found), None)
        if home is None:
            apart += [Apart(found[0][0].label, part.label, found[0][1]) for found in reasons]
            groups.append([part])
        else:
            home.append(part)
    return groups, apart


def other_definition(one: Part, other: Part) -> str:
    """How two experiments of one name differ beside their methods, targets and seeds."""
    return _listed(_definition(one, other), one, other)


def _definition(one: Part, other: Part) -> Iterator[tuple[str, str, str]]:
    for name in ("dataset", "task"):
        if (first := getattr(one.table, name)) != (second := getattr(other.table, name)):
            yield name, first, second
            return
    if one.shared is not None and other.shared is not None:
        yield from differences(one.shared, other.shared)
    common = [target for target in one.sources if target in other.sources]
    yield from differences(
        {target: one.sources[target] for target in common},
        {target: other.sources[target] for target in common},
        "sources",
    )


def other_recipe(name: str) -> Callable[[Part, Part], str]:
    """How a method of that name differs between two experiments."""

    def why(one: Part, other: Part) -> str:
        return _listed(_recipe(name, one, other), one, other)

    return why


def _recipe(name: str, one: Part, other: Part) -> Iterator[tuple[str, str, str]]:
    first, second = method_of(one, name), method_of(other, name)
    if first.reference != second.reference:
        yield "reference", str(first.reference).lower(), str(second.reference).lower()
    found = list(
        differences(one.recipes[name], other.recipes[name])
        if one.recipes.get(name) and other.recipes.get(name)
        else differences({"recipe": first.recipe}, {"recipe": second.recipe})
    )
    yield from found
    if not found and any(other.keys.get(run, key) != key for run, key in one.keys.items() if run[0] == name):
        yield "the cells", "one key", "another"


def method_of(part: Part, name: str) -> Method:
    """A part's method of that name."""
    return next(row for row in part.table.methods if row.name == name)


def _listed(found: Iterator[tuple[str, str, str]], one: Part, other: Part) -> str:
    return "; ".join(f"{what}: {one.label} {first}, {other.label} {second}" for what, first, second in found)
