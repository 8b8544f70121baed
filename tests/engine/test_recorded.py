"""What a CUDA graph would hold, checked without a GPU: steps are recorded and replayed operation by operation."""

import importlib
import sys
from dataclasses import replace

import pytest
import torch
from torch import nn

from benchmarks.workload import make_registry
from msda_bench.data import LocalFiles
from msda_bench.engine import graph, machine
from msda_bench.engine.compiled import CompiledAdadelta
from msda_bench.engine.optim import _dense
from msda_bench.engine.train import Trainer
from msda_bench.layers.step_key import dropout
from tests.engine.conftest import OPTIMIZERS, at_seeds, make_cell, ref, result, train
from tests.engine.simulated import simulate
from tests.engine.test_waits import field_cells, small

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.fixture
def recording(monkeypatch):
    return simulate(monkeypatch)


@pytest.mark.parametrize(
    ("method", "optimizer", "stack"),
    [("DARN", "adam", 2), ("MCD", "sgd", 1), ("KD3A", "adamw", 1), ("KD3A", "sgd", 2)],
)
def test_replayed_steps_with_their_updates_are_those_of_the_host(recording, monkeypatch, method, optimizer, stack):
    """With a schedule, clipping, offsets of decayed weights and values carried from step to step."""
    more = {"schedule": "cosine", "clip": 0.5, "epochs": 2, "steps": 9}
    given = {"dataset": {"sparse": False}, "optimizer": OPTIMIZERS[optimizer], **more}
    cell = make_cell("SRC", **given) if method == "KD3A" else make_cell(method, **given)
    if method == "KD3A":
        cell = replace(cell, scheme=ref("scheme", "kd3a"))
    cells = at_seeds(cell, stack)
    replayed = train(cells, stack=stack)
    assert recording
    assert all(made.done for made in recording)
    recording.clear()
    monkeypatch.setattr(graph, "WARM", sys.maxsize)
    assert [result(record) for record in train(cells, stack=stack)] == [result(record) for record in replayed]
    assert not recording


@pytest.mark.slow
def test_of_every_method_several_steps_a_replay_are_the_hosts(recording, monkeypatch):
    """Of three steps in an epoch two are a block and the third another, recorded at once and replayed in the next."""
    registry = make_registry()
    trainer = Trainer(registry, LocalFiles(), "cpu")
    for name, whole in field_cells(registry).items():
        cell = small(whole, "images", epochs=2, steps=3, optimizer=OPTIMIZERS["sgd"], lr_factors={})
        recording.clear()
        found = []
        for warm, at_once in ((0, 2), (sys.maxsize, 1)):
            monkeypatch.setattr(graph, "WARM", warm)
            monkeypatch.setattr(graph, "AT_ONCE", at_once)
            found += map(result, trainer.train([cell]))
        assert len(recording) >= 2, name
        assert found[0] == found[1], name


@pytest.mark.parametrize("optimizer", ["sgd", "adam", "adamw"])
def test_fused_optimisers_with_a_rate_in_a_tensor_are_torchs(monkeypatch, optimizer):
    trained = []
    for recorded in (False, True):
        monkeypatch.setattr(machine, "records_updates", lambda device, recorded=recorded: recorded)
        torch.manual_seed(0)
        layer = nn.Linear(4, 3)
        betas = {} if optimizer == "sgd" else {"beta1": 0.9, "beta2": 0.999}
        made = _dense(optimizer, betas | OPTIMIZERS[optimizer][optimizer], list(layer.parameters()))
        for step in range(6):
            made.set_lr(0.01 / (1 + step))
            made.zero_grad()
            layer(torch.ones(2, 4)).square().sum().backward()
            made.decay({id(layer.weight): torch.ones(3, 4)})
            made.step()
        trained.append(layer.weight.detach())
    torch.testing.assert_close(*trained)


@pytest.fixture(scope="module")
def fused():
    """The module of the kernel, which Triton interprets where there is no GPU."""
    pytest.importorskip("triton")
    with pytest.MonkeyPatch.context() as patch:
        if DEVICE == "cpu":
            patch.setenv("TRITON_INTERPRET", "1")
        yield importlib.import_module("msda_bench.engine.fused")


@pytest.mark.parametrize("way", ["compiled", "fused"])
def test_adadelta_in_one_pass_is_torchs(request, way):
    """In any layout of weight and gradient, at a rate that changes; a weight without a gradient is left alone."""
    cls, device = CompiledAdadelta, "cpu"
    if way == "fused":
        cls, device = request.getfixturevalue("fused").FusedAdadelta, DEVICE
    trained = []
    for ours in (True, False):
        drawn = torch.Generator().manual_seed(0)
        weights = [torch.randn(shape, generator=drawn) for shape in ((70, 33), (4, 3, 3, 3), (5,), ())]
        weights[1] = weights[1].to(memory_format=torch.channels_last)
        weights = [nn.Parameter(weight.to(device)) for weight in weights]
        settings = {"lr": 1.0, "rho": 0.9, "eps": 1e-6}
        optimizer = cls(weights, settings) if ours else torch.optim.Adadelta(weights, foreach=False)
        for step in range(12):
            optimizer.zero_grad()
            if ours:
                optimizer.set_lr(1 / (1 + step))
            else:
                optimizer.param_groups[0]["lr"] = 1 / (1 + step)
            for weight in weights[:2]:
                scale = 10.0 ** torch.randint(-4, 3, weight.shape, generator=drawn)
                weight.grad = (torch.randn(weight.shape, generator=drawn) * scale).to(device)
            weights[0].grad = weights[0].grad.t().contiguous().t()
            weights[3].grad = torch.full((), 0.5, device=device)
            optimizer.step()
        trained.append([weight.detach() for weight in weights])
    assert trained[0][1].is_contiguous(memory_format=torch.channels_last)
    for one, other in zip(*trained, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=3e-7)
    assert torch.equal(trained[0][2], trained[1][2])


@pytest.mark.parametrize("rate", [0.1, 0.7])
def test_dropout_in_one_pass_is_the_plain_one_to_the_bit(fused, rate):
    """Alone, and mapped over inputs, keys or both, with its gradient."""
    torch.manual_seed(0)
    keys = torch.randint(-(2**31), 2**31 - 1, (3, 2), device=DEVICE).int()
    x = torch.randn(3, 37, 41, device=DEVICE)
    ways = [
        lambda drop, x: drop(x[0], keys[0], rate),
        lambda drop, x: torch.vmap(lambda x, key: drop(x, key, rate))(x, keys),
        lambda drop, x: torch.vmap(lambda x: drop(x, keys[0], rate), in_dims=1)(x.transpose(0, 1)),
        lambda drop, x: torch.vmap(lambda key: drop(x[0], key, rate))(keys),
    ]
    for way in ways:
        found = []
        for drop in (fused.fused_dropout, dropout):
            given = x.clone().requires_grad_()
            dropped = way(drop, given)
            dropped.sin().sum().backward()
            found.append((dropped.detach(), given.grad))
        assert all(map(torch.equal, *found))
        assert 0 < (found[0][0] == 0).float().mean() < 1
