"""Sharpmax beside softmax, a full sort and batched bisection, forward and backward, by the number of scores."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
import torch
from pytest_benchmark.fixture import BenchmarkFixture
from torch import Tensor

from benchmarks.bisection import bisection
from benchmarks.clocks import measure
from benchmarks.results import Results
from msda_bench.functional import sharpmax

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
def test_projection(benchmark: BenchmarkFixture, results: Results, name: str, size: tuple[int, int]) -> None:
    k, batch = size
    z, upstream = _scores(k, batch), _scores(k, batch).detach().flip(0)
    calls, rounds = max(1, (1 << 18) // (k * batch)), 7 if k * batch <= 1 << 20 else 3

    def run() -> None:
        for _ in range(calls):
            _gradient(FUNCTIONS[name], z, upstream)

    results.add("sharpmax", f"{name}: k = {k}, batch {batch}", measure(benchmark, run, rounds, calls))


@pytest.mark.parametrize("k", [4, 64, 1024])
def test_bisection_computes_the_same(k: int) -> None:
    z, upstream = _scores(k, 16), _scores(k, 16).detach().flip(0)
    torch.testing.assert_close(bisection(z), sharpmax(z), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(
        _gradient(bisection, z, upstream), _gradient(sharpmax, z, upstream), rtol=1e-3, atol=1e-4
    )
