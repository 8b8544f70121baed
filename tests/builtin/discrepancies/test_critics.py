"""Discrepancies with critics: gaps and gradients agree with plain loops, and trained critics approach the distance."""

from __future__ import annotations

from typing import Any

import pytest
import scipy.stats
import torch
from torch.nn import functional

from msda_bench.functional import uniform
from msda_bench_builtin.discrepancies import ProxyADistance, Wasserstein
from tests.builtin.discrepancies.samples import features
from tests.builtin.gradients import same_gradient

KEY = torch.tensor([5, 6], dtype=torch.int32)


def apply(module: Any, i: int, x: torch.Tensor) -> torch.Tensor:
    """The i-th critic alone."""
    for layer in module.critics:
        x = x @ layer.weight[i] + layer.bias[i] if hasattr(layer, "weight") else layer(x)
    return x.squeeze(-1)


@pytest.mark.parametrize("hidden", [(), (7, 4)])
@pytest.mark.parametrize("sign", ["text", "code"])
def test_d_a_equals_the_critics_logistic_loss(hidden: tuple[int, ...], sign: Any) -> None:
    """The gap is 2 - loss, or the loss itself with the code's sign; features maximise the loss, critics minimise it."""
    source, target = features()
    torch.manual_seed(0)
    module = ProxyADistance(hidden=hidden, sign=sign).build(5, 3).double()
    gaps = module(source, target)
    losses = []
    for i in range(3):
        logits = apply(module, i, torch.cat([source[i], target]))
        labels = torch.cat([torch.ones(8), torch.zeros(8)]).double()
        each = functional.binary_cross_entropy_with_logits(logits, labels, reduction="none")
        losses.append(each[:8].mean() + each[8:].mean())
    loss = torch.stack(losses)
    assert torch.allclose(gaps, 2 - loss if sign == "text" else loss)
    same_gradient(gaps.sum(), -loss.sum(), (source, target))
    same_gradient(gaps.sum(), loss.sum(), module.parameters())


def test_d_a_gap_grows_with_the_distance_once_critics_are_trained() -> None:
    generator = torch.Generator().manual_seed(1)
    near, far = torch.randn(64, 2, generator=generator), torch.randn(64, 2, generator=generator) + 4
    target = torch.randn(64, 2, generator=generator)
    torch.manual_seed(0)
    module = ProxyADistance().build(2, 2)
    optimizer = torch.optim.Adam(module.parameters(), lr=0.1)
    for _ in range(100):
        optimizer.zero_grad()
        gaps = module(torch.stack([near, far]), target)
        gaps.sum().backward()
        optimizer.step()
    assert gaps[1] > gaps[0] + 1


@pytest.mark.parametrize("hidden", [(), (7, 4)])
@pytest.mark.parametrize("weight", [0.0, 3.0])
def test_wasserstein_equals_plain_loops(hidden: tuple[int, ...], weight: float) -> None:
    """The gap, and the separate gradients of distance and penalty."""
    source, target = features()
    torch.manual_seed(0)
    module = Wasserstein(hidden=hidden, penalty=weight).build(5, 3).double()
    module.key = KEY
    gaps = module(source, target)
    share = uniform(KEY, (3, 8)).double()
    distances, penalties = [], []
    for i in range(3):
        distances.append(apply(module, i, source[i]).mean() - apply(module, i, target).mean())
        slopes = []
        between = [s * a + (1 - s) * b for s, a, b in zip(share[i], source[i], target, strict=True)]
        for point in (*source[i], *target, *between):
            at = point.detach().requires_grad_()
            (slope,) = torch.autograd.grad(apply(module, i, at), at, create_graph=True)
            slopes.append((slope.norm() - 1) ** 2)
        penalties.append(torch.stack(slopes).mean())
    distance, penalty = torch.stack(distances), weight * torch.stack(penalties)
    assert torch.allclose(gaps, distance)
    # Features lower the distance; critics raise it, and lower the penalty.
    same_gradient(gaps.sum(), distance.sum(), (source, target))
    same_gradient(gaps.sum(), (penalty - distance).sum(), module.parameters())


def test_trained_wasserstein_critics_approach_the_distance() -> None:
    """For shifted samples the best critic is linear, and scipy computes the distance.

    Its slope maximises s W - penalty (s - 1)^2, so that it is 1 + W / (2 penalty).
    """
    target = torch.randn(16, 1, generator=torch.Generator().manual_seed(1))
    source = torch.stack([target.flip(0), target + 2])
    module = Wasserstein(hidden=(), penalty=10.0).build(1, 2)
    torch.nn.init.constant_(module.critics[0].weight, 0.1)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.05)
    for _ in range(10):
        optimizer.zero_grad()
        module(source, target).sum().backward()
        optimizer.step()
    same, apart = module(source, target).tolist()
    distance = scipy.stats.wasserstein_distance(source[1, :, 0].numpy(), target[:, 0].numpy())
    assert same == pytest.approx(0, abs=1e-6)
    assert apart == pytest.approx(distance * (1 + distance / 20), rel=1e-5)
