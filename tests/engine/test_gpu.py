"""Tests that need a GPU; run them with `pytest -m gpu`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from msda_bench.engine.tensors import HostBytes, batch_of
from msda_bench.engine.train import Trainer
from msda_bench.plugins import Registry
from msda_bench.store.record import Record
from msda_bench.suite.cell import Cell
from msda_bench.suite.protocol import Splitting
from tests.engine.conftest import METHODS, NoFiles

MakeCell = Callable[..., Cell]

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch finds no GPU here"),
]


def short(cell: Cell) -> Cell:
    return replace(cell, training=cell.training.model_copy(update={"epochs": 1, "steps": 40}))


def trained(registry: Registry, cells: list[Cell], device: str, stack: int | None) -> dict[str, Record]:
    return {record.key: record for record in Trainer(registry, NoFiles(), device, stack).train(cells)}


def result(record: Record) -> tuple[Any, ...]:
    return record.status, record.outcome, record.curves, record.bound, record.validation


def test_bytes_become_identical_numbers_on_cpu_and_gpu() -> None:
    every = np.arange(256, dtype=np.uint8).reshape(256, 1)
    rows = torch.tensor([[255, 3, 3], [0, 77, 128]])
    on_cpu = batch_of(HostBytes.of(every, np.arange(256), torch.device("cpu")), rows)
    host = HostBytes.of(every, np.arange(256), torch.device("cuda"))
    for examples in (host, host.resident()):
        assert torch.equal(batch_of(examples, rows.cuda()).cpu(), on_cpu)


OPTIONS: tuple[dict[str, Any], ...] = ({"split_sources": Splitting(clusters=4)}, {"labelled_target": 12})


@pytest.mark.parametrize(
    ("method", "options"), [*((method, {}) for method in METHODS), *(("DARN", options) for options in OPTIONS)], ids=str
)
def test_gpu_trains_like_the_cpu_alone_and_stacked(
    registry: Registry, make_cell: MakeCell, method: str, options: dict[str, Any]
) -> None:
    given = {"dataset": {"regression": True}, "mu": 0.001} if method == "SPECTRAL" else options
    cells = [short(make_cell(method, seed=seed, **given)) for seed in range(4)]
    on_cpu = trained(registry, cells, "cpu", 1)
    for stack in (1, 4):
        for key, record in trained(registry, cells, "cuda", stack).items():
            assert record.provenance["stack"] == stack
            assert record.curves is not None
            expected = on_cpu[key].curves
            assert expected is not None
            torch.testing.assert_close(
                torch.tensor(record.curves.risks), torch.tensor(expected.risks), rtol=5e-3, atol=1e-3
            )


@pytest.mark.parametrize("method", ["DARN", "MDMN", "DANN"])
def test_at_a_fixed_stack_size_other_runs_and_position_change_no_bit(
    registry: Registry, make_cell: MakeCell, method: str
) -> None:
    cells = [short(make_cell(method, seed=seed)) for seed in range(7)]
    companies = [[cells[0], *cells[1:4]], [*cells[4:7], cells[0]], [cells[5], cells[0], cells[6]]]
    found = [trained(registry, company, "cuda", 4)[cells[0].key] for company in companies]
    assert result(found[0]) == result(found[1]) == result(found[2])


def test_the_stack_size_follows_from_the_gpus_memory(registry: Registry, make_cell: MakeCell) -> None:
    records = trained(registry, [short(make_cell(seed=seed)) for seed in range(4)], "cuda", None)
    assert {record.provenance["stack"] for record in records.values()} == {4}
