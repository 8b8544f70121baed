"""Sharpmax beside softmax, a full sort and batched bisection in one run, forward and backward, by the scores."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
import torch
from pytest_benchmark.fixture import BenchmarkFixture
from torch import Tensor

from msda_bench.functional import sharpmax


def bisection(z: Tensor) -> Tensor:
    """Sharpmax of scores (..., k) for a whole batch, without a host sync; differentiable in O(k)."""
    fixed = z.detach()
    high = fixed.amax(-1, keepdim=True)
    low = high - 1
    for _ in range(24):  # each halves an interval of width 1, down to the spacing of float32
        middle = (low + high) / 2
        below = (fixed - middle).clamp(min=0).square().sum(-1, keepdim=True) > 1
        low, high = torch.where(below, middle, low), torch.where(below, high, middle)
    above = (z - low).clamp(min=0)
    # One Newton step on the threshold: it moves by a rounding error, and carries the implicit function's gradient.
    slope = 2 * above.detach().sum(-1, keepdim=True)
    inside = (z - low - (above.square().sum(-1, keepdim=True) - 1) / slope).clamp(min=0)
    return inside / inside.sum(-1, keepdim=True)


FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "softmax": lambda z: z.softmax(-1),
    "sharpmax": sharpmax,
    "sort": lambda z: z.sort(-1).values,
    "bisection": bisection,
}
SIZES = [(4, 256), (64, 256), (1024, 256), (4096, 256), pytest.param((4096, 4096), marks=pytest.mark.slow)]


def _scores(k: int, batch: int) -> Tensor:
    return torch.randn(batch, k, generator=torch.Generator().manual_seed(0)).requires_grad_()


def _gradient(function: Callable[[Tensor], Tensor], z: Tensor, upstream: Tensor) -> Tensor:
    (found,) = torch.autograd.grad(function(z), z, upstream)
    return found


@pytest.mark.benchmark(group="sharpmax", timer=time.process_time)
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_projection(benchmark: BenchmarkFixture, name: str, size: tuple[int, int]) -> None:
    k, batch = size
    z, upstream = _scores(k, batch), _scores(k, batch).detach().flip(0)
    calls, rounds = max(1, (1 << 18) // (k * batch)), 7 if k * batch <= 1 << 20 else 3
    work = (FUNCTIONS[name], z, upstream)
    benchmark.pedantic(_gradient, work, rounds=rounds, iterations=calls, warmup_rounds=1)  # type: ignore[no-untyped-call]
    if name == "bisection":
        torch.testing.assert_close(bisection(z), sharpmax(z), rtol=1e-4, atol=1e-5)
        exact = _gradient(sharpmax, z, upstream)
        torch.testing.assert_close(_gradient(bisection, z, upstream), exact, rtol=1e-3, atol=1e-4)
