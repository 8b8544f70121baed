"""Finds cells that can be trained as one tensor program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from msda_bench.api import Component
from msda_bench.engine.carried import overrides
from msda_bench.engine.model import Components
from msda_bench.engine.runs import Run
from msda_bench.functional import SparseRows
from msda_bench.suite.cell import Cell, canonical_json

Named: TypeAlias = tuple[Cell, Components]
"""A cell with its components."""


def why_alone(components: Components) -> str | None:
    """Why a cell with these components must train alone; None if it can be stacked."""
    used: tuple[Component | None, ...] = (
        components.backbone,
        components.scheme,
        components.discrepancy,
        components.aggregator,
    )
    barred = [component for component in used if component is not None and not component.stackable]
    which = " and ".join(f"{component.kind} {component.name!r}" for component in barred)
    return f"{which} cannot be stacked (stackable = False)" if barred else None


def numbers(cell: Cell, components: Components) -> dict[str, dict[str, float]]:
    """Numbers that may differ between the runs of a stack besides seeds and domains, by owner and name."""
    found = {"cell": {"mu": float(cell.mu)}}
    for owner, component in (("aggregator", components.aggregator), ("scheme", components.scheme)):
        names = component.stacked if component is not None else ()
        found[owner] = {name: float(getattr(component, name)) for name in names}
    return found


def signature(cell: Cell, components: Components) -> str:
    """A text that is equal for cells that differ only in seed, target, sources and `numbers`."""
    plain = cell.to_json()
    for owner, values in numbers(cell, components).items():
        for name in values:
            (plain if owner == "cell" else plain[owner]["params"]).pop(name, None)  # may be absent at its default
    for name in ("seed", "target"):
        del plain[name]
    return canonical_json({**plain, "sources": len(cell.sources)})


def families(named: Sequence[Named]) -> list[list[Named]]:
    """The cells by signature, and within each by split, whose data are prepared once."""
    found: dict[str, list[Named]] = {}
    for cell, components in named:
        found.setdefault(signature(cell, components), []).append((cell, components))
    return [sorted(family, key=lambda one: (one[0].target, one[0].seed)) for family in found.values()]


def same_shapes(runs: Sequence[Run]) -> list[list[Run]]:
    """The runs grouped by shapes, which a stack must share and which depend on the data."""
    found: dict[object, list[Run]] = {}
    for run in runs:
        x = run.data.x
        width = (x.width,) if isinstance(x, SparseRows) else tuple(x.shape[1:])
        sizes = run.steps, run.batch, run.batches, len(run.groups), type(x), width, _carried_sizes(run)
        found.setdefault(sizes, []).append(run)
    return list(found.values())


def _carried_sizes(run: Run) -> tuple[object, ...]:
    """What the shapes of a run's carried tensors and of its pass over the target can depend on."""
    scheme = run.components.scheme
    carries = overrides(scheme, "carry") or overrides(scheme, "at_epoch")
    return (run.sizes, len(run.target_rows)) if carries else ()
