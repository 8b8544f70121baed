"""The work that is measured: cells for the engine, and the same data dense for the reference."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
import torch

from benchmarks.reference import (
    Domain,
    Networks,
    Settings,
    adam,
    amazon_networks,
    digits_networks,
    fonts_networks,
    sgd,
    table_networks,
    train,
    train_briefly,
)
from benchmarks.synthetic import AmazonLike, DigitsLike, ManyDomains, TableLike
from msda_bench.api import Dataset
from msda_bench.data import LocalFiles
from msda_bench.engine import graph
from msda_bench.engine.train import Trainer
from msda_bench.plugins import Entry, Registry, discover
from msda_bench.suite.expand import Expansion, expand
from msda_bench.suite.load import load_suite
from msda_bench.suite.run_spec import RunSpec
from msda_bench_builtin.datasets import Fonts

Work: TypeAlias = Literal["amazon", "digits"]


def make_registry() -> Registry:
    """The installed components and the synthetic datasets."""
    made = [Entry("dataset", cls, "benchmarks", "0") for cls in (AmazonLike, DigitsLike, ManyDomains, TableLike)]
    return Registry([*discover().entries, *made])


def expansion(name: str, registry: Registry) -> Expansion:
    """What the suite file of that name in this folder asks for."""
    return expand(load_suite(Path(__file__).parent / f"{name}.yaml", registry), registry)


def cells_of(found: Expansion, method: str) -> list[RunSpec]:
    """All cells of a method."""
    return [found.cells[planned.key] for planned in found.plan.cells if planned.method == method]


def engine_train(trainer: Trainer, cells: Sequence[RunSpec], at_once: int = 1) -> Callable[[int], None]:
    """Trains the cells for a number of steps, in one epoch and one stack; a GPU replays so many steps at once."""

    def run(steps: int) -> None:
        graph.AT_ONCE = at_once
        short = [
            replace(cell, training=cell.training.model_copy(update={"epochs": 1, "steps": steps})) for cell in cells
        ]
        for record in trainer.train(short):
            assert record.status == "ok", record.message
            assert record.timing["steps"] == steps
            assert record.provenance["stack"] == len(cells), record.provenance

    return run


def reference_train(work: Work, device: str) -> Callable[[int], None]:
    """Trains the reference's DARN for a number of steps."""
    make: Callable[[], Networks] = amazon_networks if work == "amazon" else digits_networks
    dataset: Dataset = AmazonLike(train=2000) if work == "amazon" else DigitsLike(train=500)
    settings = Settings(20, 0.9, device) if work == "amazon" else Settings(128, 0.1, device)
    *sources, target = (dense(dataset, name) for name in dataset.domains)

    def run(steps: int) -> None:
        torch.manual_seed(0)
        log = train(make(), sources, target, settings, steps, seed=0)
        assert all(math.isfinite(value) for line in log for value in line)

    return run


def brief_train(work: Literal["table", "fonts"], method: str) -> Callable[[int], None]:
    """Trains SRC or DARN on the table or on rendered letters for a number of steps, in a plain loop."""
    dataset: Dataset = TableLike(train=200) if work == "table" else Fonts(train=200, per_class=20)
    names = dataset.domains if work == "table" else ("serif", "mono", "stix_italic", "sans")
    *sources, target = (dense(dataset, name) for name in names)
    known = target if method == "DARN" else None

    def run(steps: int) -> None:
        torch.manual_seed(0)
        if work == "table":
            loss = train_briefly(table_networks(sources[0].x.shape[1]), adam, sources, known, 32, steps, mu=0.1)
        else:
            loss = train_briefly(
                fonts_networks(sources[0].x[0].size, dataset.task.classes), sgd, sources, known, 32, steps, mu=0.01
            )
        assert math.isfinite(loss)

    return run


def dense(dataset: Dataset, domain: str) -> Domain:
    """The training part of a domain as arrays."""
    data = dataset.load(domain, LocalFiles())
    x = data.x[: dataset.train]
    rows = x if isinstance(x, np.ndarray) else x.toarray()
    return Domain(np.ascontiguousarray(rows, dtype=np.float32), data.y[: dataset.train])
