"""Tests that need a GPU; run them with `pytest -m gpu`."""

import sys

import numpy as np
import pytest
import torch

from benchmarks.workload import make_registry
from msda_bench.data import LocalFiles
from msda_bench.engine import graph, machine
from msda_bench.engine.tensors import HostBytes, batch_of
from msda_bench.engine.train import Trainer
from tests.engine.conftest import CPU, at_seeds, make_cell, result, train
from tests.engine.test_stacked import CASES
from tests.engine.test_waits import IN_STEPS, field_cells, small

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch finds no GPU here"),
]


def short(method, count, **given):
    return at_seeds(make_cell(method, epochs=1, steps=40, **given), count)


def test_bytes_become_identical_numbers_on_cpu_and_gpu():
    every = np.arange(256, dtype=np.uint8).reshape(256, 1)
    rows = torch.tensor([[255, 3, 3], [0, 77, 128]])
    on_cpu = batch_of(HostBytes.of(every, np.arange(256), CPU), rows)
    host = HostBytes.of(every, np.arange(256), torch.device("cuda"))
    for examples in (host, host.resident()):
        assert torch.equal(batch_of(examples, rows.cuda()).cpu(), on_cpu)


@pytest.mark.parametrize("name", CASES)
def test_gpu_trains_like_the_cpu_alone_and_stacked(name):
    method, given = CASES[name]
    cells = short(method, 4, **given)
    on_cpu = [torch.tensor(record.curves.risks) for record in train(cells)]
    for stack in (1, 4):
        for record, expected in zip(train(cells, stack=stack, device="cuda"), on_cpu, strict=True):
            assert record.provenance["stack"] == stack
            assert record.provenance["engine"] == machine.CUDA_ENGINE
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


@pytest.fixture
def refused(monkeypatch):
    """Why blocks of steps could not be recorded as graphs."""
    reasons = []
    record = graph.Replayed._recorded

    def noted(self, given):
        try:
            return record(self, given)
        except RuntimeError as error:
            reasons.append(error)
            raise

    monkeypatch.setattr(graph.Replayed, "_recorded", noted)
    return reasons


@pytest.mark.parametrize("precision", ["float32", "tf32", "bf16"])
@pytest.mark.parametrize(("inputs", "stack"), [("vectors", 4), ("images", 1)])
def test_steps_replayed_alone_or_by_five_are_those_of_the_host_to_the_bit(
    monkeypatch, refused, inputs, stack, precision
):
    registry = make_registry()
    trainer, differ, waiting = Trainer(registry, LocalFiles(), "cuda", stack), [], set()
    for name, whole in field_cells(registry).items():
        cell = small(whole, inputs, epochs=2, steps=24, precision=precision)
        cells = at_seeds(cell, stack)

        def trained(warm, at_once, name=name, cells=cells):
            with monkeypatch.context() as patch:
                patch.setattr(graph, "WARM", warm)
                patch.setattr(graph, "AT_ONCE", at_once)
                records = list(trainer.train(cells))
            assert {record.status for record in records} == {"ok"}, (name, records[0].message)
            return [result(record) for record in records]

        host = trained(sys.maxsize, 1)
        wrong = [at_once for at_once in (1, 5) if trained(graph.WARM, at_once) != host]
        if refused:
            waiting.add(name)
            refused.clear()
        if wrong:
            differ.append((name, wrong, "as the host itself" if trained(sys.maxsize, 1) != host else "unlike the host"))
    assert (differ, waiting) == ([], set(IN_STEPS))  # both, or one would hide the other
