"""Aggregators receive the sizes of the sources."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from msda_bench.engine.model import Components
from msda_bench.engine.prepare import Preparer
from msda_bench.engine.runs import Run
from msda_bench.engine.train import Trainer
from msda_bench.plugins import Registry
from msda_bench.suite.cell import Cell, Ref
from msda_bench.suite.protocol import Splitting
from tests.engine.conftest import NoFiles


@pytest.mark.parametrize("stack", [1, 2])
def test_weights_by_size_are_computed_for_each_run(
    registry: Registry, make_cell: Callable[..., Cell], stack: int
) -> None:
    """The parts of split sources have sizes that depend on the seed."""
    size = Ref("aggregator", "size", 1, "msda-bench", {})
    cells = [
        replace(make_cell("DARN", seed=seed, split_sources=Splitting(clusters=2)), aggregator=size) for seed in (0, 1)
    ]
    shares = []
    for cell in cells:
        components = Components.of(cell, registry)
        run = Run(cell, components, Preparer(NoFiles(), torch.device("cpu")).prepare(components.dataset, cell))
        examples = [sum(group) for group in run.sizes]
        shares.append([count / sum(examples) for count in examples])
    assert len(set(shares[0])) > 1
    assert shares[0] != shares[1]
    records = {record.key: record for record in Trainer(registry, NoFiles(), "cpu", stack).train(cells)}
    assert {record.provenance["stack"] for record in records.values()} == {stack}
    for cell, expected in zip(cells, shares, strict=True):
        curves = records[cell.key].curves
        assert curves is not None
        assert curves.weights[-1] == pytest.approx(expected, abs=1e-5)
