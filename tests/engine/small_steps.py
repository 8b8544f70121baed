"""A small cell of every method of the field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from benchmarks.synthetic import AmazonLike, DigitsLike
from msda_bench.api import Component
from msda_bench.plugins import Registry
from msda_bench.suite.cell import Cell, Ref
from msda_bench.suite.expand import expand
from msda_bench.suite.load import load_suite
from msda_bench.suite.protocol import Protocol

FIELD = Path(__file__).parents[2] / "suites" / "field.yaml"
BESIDE = {
    "size": ("DARN", "aggregator", {}),
    "wadn": ("DARN", "aggregator", {}),
    "spectral_l2": ("DARN", "discrepancy", {"iterations": 5}),
    "aad": ("SHOT", "scheme", {}),
    "joint": ("TAR", "scheme", {}),
    "adabn": ("MFSAN", "scheme", {}),
    "pass_through": ("MFSAN", "scheme", {}),
}
"""What the field's suite leaves out, in place of a part of one of its methods."""
Inputs: TypeAlias = Literal["vectors", "images"]


def field_cells(registry: Registry) -> dict[str, Cell]:
    """A cell of each method of the field, and of what its suite leaves out, by name."""
    found = expand(load_suite(FIELD, registry), registry)
    cells = {planned.method: found.cells[planned.key] for planned in reversed(found.plan.cells)}
    for name, (method, kind, params) in BESIDE.items():
        cells[f"{method}-{name}"] = replace(cells[method], **{kind: _ref(registry, kind, name, params)})
    return dict(sorted(cells.items()))


def small(registry: Registry, cell: Cell, inputs: Inputs, options: Mapping[str, Any] | None = None) -> Cell:
    """The cell on a few made examples with a small network; with options of the protocol."""
    made = AmazonLike(train=40, examples=60) if inputs == "vectors" else DigitsLike(train=40, examples=60)
    networks: dict[Inputs, tuple[str, dict[str, Any]]] = {
        "vectors": ("mlp", {"hidden": [8], "dropout": 0.5}),
        "images": ("convnet", {"channels": [4], "hidden": []}),
    }
    *sources, target = made.domains
    return replace(
        cell,
        dataset=Ref("dataset", made.name, made.version, "benchmarks", made.params()),
        fingerprint="none",
        sources=tuple(sources),
        target=target,
        backbone=_ref(registry, "backbone", *networks[inputs]),
        training=Protocol.model_validate(dict(cell.training) | {"epochs": 1, "batch": 8} | dict(options or {})),
    )


def _ref(registry: Registry, kind: str, name: str, params: dict[str, Any]) -> Ref:
    entry = registry.entry(kind, name)
    made: Component = entry.create(params)
    return Ref(kind, name, made.version, entry.distribution, made.params())
