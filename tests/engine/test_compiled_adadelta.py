"""Compiled Adadelta agrees with torch's."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from msda_bench.engine.compiled import CompiledAdadelta


def train(steps: int, dtype: torch.dtype, *, compiled: bool) -> list[torch.Tensor]:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(7, 9), nn.ReLU(), nn.Linear(9, 3)).to(dtype)
    parameters = list(net.parameters())
    if compiled:
        optimizer: CompiledAdadelta | torch.optim.Optimizer = CompiledAdadelta(parameters, 0.7, 0.95, 1e-5)
    else:
        optimizer = torch.optim.Adadelta(parameters, lr=0.7, rho=0.95, eps=1e-5)
    for step in range(steps):
        x = torch.randn(6, 7, dtype=dtype, generator=torch.Generator().manual_seed(step))
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x), torch.arange(6) % 3).backward()
        optimizer.step()
    return [parameter.detach() for parameter in parameters]


@pytest.mark.parametrize(("dtype", "steps", "atol"), [(torch.float64, 300, 1e-10), (torch.float32, 50, 1e-5)])
def test_compiled_adadelta_equals_torchs(dtype: torch.dtype, steps: int, atol: float) -> None:
    for one, other in zip(train(steps, dtype, compiled=True), train(steps, dtype, compiled=False), strict=True):
        assert torch.allclose(one, other, atol=atol)


def test_a_transposed_gradient_updates_the_right_elements() -> None:
    weights = []
    for make in (lambda p: CompiledAdadelta(p, 1.0, 0.9, 1e-6), lambda p: torch.optim.Adadelta(p, lr=1.0)):
        parameter = nn.Parameter(torch.zeros(2, 3))
        parameter.grad = torch.arange(6.0).view(3, 2).t()
        make([parameter]).step()
        weights.append(parameter.detach())
    assert torch.allclose(weights[0], weights[1])


def test_channels_last_weights_are_trained_correctly() -> None:
    weights = []
    for layout in (torch.contiguous_format, torch.channels_last):
        torch.manual_seed(0)
        net = nn.Conv2d(3, 4, 3).double().to(memory_format=layout)
        optimizer = CompiledAdadelta(list(net.parameters()), 1.0, 0.9, 1e-6)
        for step in range(5):
            optimizer.zero_grad()
            x = torch.randn(2, 3, 6, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(step))
            net(x).square().mean().backward()
            optimizer.step()
        weights.append(net.weight.detach())
    assert weights[1].is_contiguous(memory_format=torch.channels_last)
    assert torch.allclose(weights[0], weights[1])


def test_a_parameter_without_gradient_is_not_updated() -> None:
    parameter = nn.Parameter(torch.ones(2))
    CompiledAdadelta([parameter], 1.0, 0.9, 1e-6).step()
    assert parameter.tolist() == [1, 1]
