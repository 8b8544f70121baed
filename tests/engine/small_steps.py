"""Training steps of every method of the field, small, on a device of one's choice, under a watch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import torch

from benchmarks.synthetic import AmazonLike, DigitsLike
from benchmarks.workload import NoFiles
from msda_bench.api import Component
from msda_bench.engine.loop import Loop
from msda_bench.engine.model import Components
from msda_bench.engine.prepare import Preparer
from msda_bench.engine.program import Program
from msda_bench.engine.runs import Run
from msda_bench.engine.single import Single
from msda_bench.engine.stacked import Stacked
from msda_bench.plugins import Registry
from msda_bench.suite.cell import Cell, Ref
from msda_bench.suite.expand import expand
from msda_bench.suite.load import load_suite
from msda_bench.suite.protocol import Protocol
from tests.engine.watch import Watch

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


class Workshop:
    """Makes programs of cells on a device, and watches what their steps ask of torch.

    Args:
        registry: the installed components, and the datasets of the cells.
        device: where they train; "meta" holds no numbers, so that it costs no arithmetic and each look shows.
    """

    def __init__(self, registry: Registry, device: str = "meta") -> None:
        self._registry, self.device = registry, torch.device(device)
        self._preparer = Preparer(NoFiles(), self.device)

    def epoch(self, cell: Cell, stack: int, steps: int) -> Watch:
        """A run's only epoch, of so many steps, watched."""
        return self.watched(cell, stack, steps, Watch(self.device.type))

    def watched(self, cell: Cell, stack: int, steps: int, watch: Watch) -> Watch:
        """The same with a given watch, which has what it saw even where a step fails."""
        loop = self._loop([replace(cell, seed=seed) for seed in range(max(stack, 1))], steps, stacked=stack > 0)
        with watch:
            loop.epoch(0)
        return watch

    def _loop(self, cells: Sequence[Cell], steps: int, *, stacked: bool) -> Loop:
        runs = []
        for cell in cells:
            components = Components.of(cell, self._registry)
            runs.append(Run(cell, components, self._preparer.prepare(components.dataset, cell)).of_steps(steps))
        program: Program = Stacked(runs, self.device) if stacked else Single(runs[0], self.device)
        return Loop(runs, program)
