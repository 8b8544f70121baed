"""Lazy Adadelta, plain and compiled, agrees with torch's dense version on real gradients."""

from __future__ import annotations

import functools
from dataclasses import replace

import pytest
import torch
from torch import nn

from msda_bench.engine.compiled import CompiledBag
from msda_bench.engine.optim import LazyAdadelta
from msda_bench.functional import SparseRows
from msda_bench.layers import BagLinear
from msda_bench.layers.bag import bag_product

WORDS, OUTPUTS, ROWS = 200, 12, 8


def batch(step: int) -> SparseRows:
    """Eight documents of random words with unequal frequencies."""
    generator = torch.Generator().manual_seed(step)
    frequency = 0.5 / torch.arange(1, WORDS + 1)
    dense = (torch.rand(ROWS, WORDS, generator=generator) < frequency).float()
    rows, columns = dense.nonzero(as_tuple=True)
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), torch.bincount(rows, minlength=ROWS).cumsum(0)])
    return SparseRows(columns, dense[rows, columns], offsets, WORDS)


def lazily(bag: BagLinear, way: str) -> LazyAdadelta | CompiledBag:
    if way == "compiled":
        return CompiledBag(bag, 1.0, 0.9, 1e-6)
    bag.product = functools.partial(bag_product, sparse_gradient=True)
    return LazyAdadelta(bag.weight, 1.0, 0.9, 1e-6)


def train(steps: int, dtype: torch.dtype, way: str) -> torch.Tensor:
    torch.manual_seed(0)
    bag, head = BagLinear(WORDS, OUTPUTS).to(dtype), nn.Linear(OUTPUTS, 2).to(dtype)
    lazy = [] if way == "dense" else [lazily(bag, way)]
    dense = [*head.parameters(), bag.bias] if lazy else [*head.parameters(), *bag.parameters()]
    optimizers = [torch.optim.Adadelta(dense, lr=1.0, rho=0.9, eps=1e-6), *lazy]
    for step in range(steps):
        x = batch(step)
        rows = replace(x, values=x.values.to(dtype))
        for optimizer in optimizers:
            optimizer.zero_grad()
        nn.functional.cross_entropy(head(torch.relu(bag(rows))), torch.arange(ROWS) % 2).backward()
        for optimizer in optimizers:
            optimizer.step()
    return bag.weight.detach()


@pytest.mark.parametrize("way", ["plain", "compiled"])
def test_equals_the_dense_update_over_300_steps(way: str) -> None:
    assert torch.allclose(train(300, torch.float64, way), train(300, torch.float64, "dense"), atol=1e-10)


@pytest.mark.parametrize("way", ["plain", "compiled"])
def test_equals_the_dense_update_to_rounding_in_float32(way: str) -> None:
    assert torch.allclose(train(50, torch.float32, way), train(50, torch.float32, "dense"), atol=1e-5)


def test_a_step_without_gradient_counts() -> None:
    weights = []
    for lazy in (True, False):
        weight = nn.Parameter(torch.ones(3, 2, dtype=torch.float64))
        optimizer = LazyAdadelta(weight, 1.0, 0.9, 1e-6) if lazy else torch.optim.Adadelta([weight])
        for touched in ([0, 1], [], [], [1, 2], [0]):
            gradient = torch.zeros(3, 2, dtype=torch.float64)
            gradient[touched] = torch.arange(1.0, 1 + len(touched), dtype=torch.float64).unsqueeze(1)
            weight.grad = gradient.to_sparse(1) if lazy else gradient
            if lazy and not touched:
                weight.grad = None
            optimizer.step()
        weights.append(weight.detach())
    assert torch.allclose(weights[0], weights[1], atol=1e-12)
