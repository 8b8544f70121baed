"""Tests that need a GPU; run them with `pytest -m gpu`."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from msda_bench.engine.tensors import HostBytes, batch_of
from tests.engine.conftest import CPU, METHODS, make_cell, result, train
from tests.engine.test_stacked import CASES

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch finds no GPU here"),
]
GPU_CASES = [*METHODS, "split", "labelled"]


def short(method, count, **given):
    return [make_cell(method, seed=seed, epochs=1, steps=40, **given) for seed in range(count)]


def test_bytes_become_identical_numbers_on_cpu_and_gpu():
    every = np.arange(256, dtype=np.uint8).reshape(256, 1)
    rows = torch.tensor([[255, 3, 3], [0, 77, 128]])
    on_cpu = batch_of(HostBytes.of(every, np.arange(256), CPU), rows)
    host = HostBytes.of(every, np.arange(256), torch.device("cuda"))
    for examples in (host, host.resident()):
        assert torch.equal(batch_of(examples, rows.cuda()).cpu(), on_cpu)


@pytest.mark.parametrize("name", GPU_CASES)
def test_gpu_trains_like_the_cpu_alone_and_stacked(name):
    method, given = CASES[name]
    cells = short(method, 4, **given)
    on_cpu = [torch.tensor(record.curves.risks) for record in train(cells)]
    for stack in (1, 4):
        for record, expected in zip(train(cells, stack=stack, device="cuda"), on_cpu, strict=True):
            assert record.provenance["stack"] == stack
            torch.testing.assert_close(torch.tensor(record.curves.risks), expected, rtol=5e-3, atol=1e-3)


@pytest.mark.parametrize("method", ["DARN", "MDMN", "DANN"])
def test_at_a_fixed_stack_size_other_runs_and_position_change_no_bit(method):
    cells = short(method, 7)
    companies = [[0, 1, 2, 3], [4, 5, 6, 0], [5, 0, 6]]
    found = [
        result(train([cells[place] for place in company], stack=4, device="cuda")[company.index(0)])
        for company in companies
    ]
    assert found[0] == found[1] == found[2]


def test_the_stack_size_follows_from_the_gpus_memory():
    assert {record.provenance["stack"] for record in train(short("DARN", 4), stack=None, device="cuda")} == {4}
