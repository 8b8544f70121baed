"""The work that is measured: cells for the engine, and the same data dense for the reference."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.reference import Domain
from benchmarks.synthetic import AmazonLike, DigitsLike
from msda_bench.api import Array, Dataset, File
from msda_bench.engine.train import Trainer
from msda_bench.plugins import Entry, Registry, discover
from msda_bench.suite.cell import Cell
from msda_bench.suite.expand import Expansion, expand
from msda_bench.suite.load import load_suite

HERE = Path(__file__).parent


class NoFiles:
    """For datasets that are made on the spot."""

    def path(self, file: File) -> Path:
        """There is no file to be had."""
        raise FileNotFoundError(file.path)

    def derived(self, name: str, make: Callable[[], Mapping[str, Array]]) -> Mapping[str, Array]:  # noqa: ARG002
        """Nothing is kept."""
        return make()


def make_registry() -> Registry:
    """The installed components and the synthetic datasets."""
    made = [Entry("dataset", cls, "benchmarks", "0") for cls in (AmazonLike, DigitsLike)]
    return Registry([*discover().entries, *made])


def expansion(name: str, registry: Registry) -> Expansion:
    """What the suite file of that name in this folder asks for."""
    return expand(load_suite(HERE / f"{name}.yaml", registry), registry)


def cell_of(found: Expansion, method: str) -> Cell:
    """The first cell of a method."""
    key = next(planned.key for planned in found.plan.cells if planned.method == method)
    return found.cells[key]


def engine_run(trainer: Trainer, cell: Cell) -> Callable[[int], None]:
    """A function that trains the cell for a number of steps, in one epoch."""

    def run(steps: int) -> None:
        (record,) = trainer.train([replace(cell, training=replace(cell.training, epochs=1, steps=steps))])
        assert record.status == "ok", record.message
        assert record.timing["steps"] == steps

    return run


def dense_domains(dataset: Dataset) -> list[Domain]:
    """Training data of each domain as dense float32 arrays; the target is the last."""
    return [_dense(dataset, name) for name in dataset.domains]


def _dense(dataset: Dataset, domain: str) -> Domain:
    data = dataset.load(domain, NoFiles())
    x = data.x[: dataset.train]
    dense = x if isinstance(x, np.ndarray) else x.toarray()
    return Domain(np.ascontiguousarray(dense, dtype=np.float32), data.y[: dataset.train])
