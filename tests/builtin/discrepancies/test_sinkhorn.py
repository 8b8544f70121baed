"""The Sinkhorn divergence agrees with a plain loop, exact transport and its two limits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.optimize
import scipy.spatial.distance
import scipy.special
import torch

from msda_bench_builtin.discrepancies import Sinkhorn
from tests.builtin.discrepancies.samples import features


def entropic(x: np.ndarray, y: np.ndarray, epsilon: float, rounds: int = 400) -> float:
    """OT_eps by plain alternating updates: the sum of both potentials' means."""
    cost = scipy.spatial.distance.cdist(x, y, "sqeuclidean") / 2
    f, g = np.zeros(len(x)), np.zeros(len(y))
    for _ in range(rounds):
        f = -epsilon * (scipy.special.logsumexp((g[None] - cost) / epsilon, axis=1) - np.log(len(y)))
        g = -epsilon * (scipy.special.logsumexp((f[:, None] - cost) / epsilon, axis=0) - np.log(len(x)))
    return float(f.mean() + g.mean())


def test_the_divergence_equals_a_plain_loop() -> None:
    source, target = features()
    gaps = Sinkhorn(blur=0.2, iterations=300).build(5, 3)(source, target)
    y = target.detach().numpy()
    for i in range(3):
        x = source[i].detach().numpy()
        epsilon = 0.2 * scipy.spatial.distance.cdist(x, y, "sqeuclidean").mean() / 2
        expected = entropic(x, y, epsilon) - entropic(x, x, epsilon) / 2 - entropic(y, y, epsilon) / 2
        assert gaps[i].item() == pytest.approx(expected, rel=1e-6)


def test_little_blur_gives_exact_transport_and_much_the_means() -> None:
    source, target = features()
    sharp = Sinkhorn(blur=0.005, iterations=1500).build(5, 3)(source, target)
    dull = Sinkhorn(blur=1000.0).build(5, 3)(source, target)
    for i in range(3):
        cost = torch.cdist(source[i], target).square().detach().numpy() / 2
        rows, columns = scipy.optimize.linear_sum_assignment(cost)
        assert sharp[i].item() == pytest.approx(cost[rows, columns].mean(), rel=0.01)
        apart = (source[i].mean(0) - target.mean(0)).square().sum().item() / 2
        assert dull[i].item() == pytest.approx(apart, rel=0.01)


def test_the_gradient_is_that_of_the_limit() -> None:
    """Compares with central differences at fixed regularisation."""
    source, target = features(k=1, b=4, d=2)
    module = Sinkhorn(blur=0.3, iterations=300).build(2, 1)
    (found,) = torch.autograd.grad(module(source, target).sum(), source)
    x, y = source[0].detach().numpy(), target.detach().numpy()
    epsilon = 0.3 * scipy.spatial.distance.cdist(x, y, "sqeuclidean").mean() / 2

    def divergence(x: np.ndarray) -> float:
        return entropic(x, y, epsilon, 300) - entropic(x, x, epsilon, 300) / 2

    for place in ((0, 0), (2, 1)):
        step = np.zeros_like(x)
        step[place] = 1e-5
        slope = (divergence(x + step) - divergence(x - step)) / 2e-5
        assert found[0][place].item() == pytest.approx(slope, abs=1e-6)


def test_the_default_is_near_the_limit_for_clouds_of_unequal_shares() -> None:
    """Mass must move between the clouds, for which 20 updates are too few."""
    generator = torch.Generator().manual_seed(0)

    def cloud(share: float) -> torch.Tensor:
        side = (torch.arange(20) < share * 20).double().unsqueeze(1) - 0.5
        return torch.randn(20, 100, dtype=torch.float64, generator=generator) * 0.3 + side

    source, target = torch.stack([cloud(0.3), cloud(0.6)]), cloud(0.5)
    limit, usual, few = (
        one.build(100, 2)(source, target) for one in (Sinkhorn(iterations=5000), Sinkhorn(), Sinkhorn(iterations=20))
    )
    assert ((usual - limit).abs() < 0.1 * limit).all()
    assert ((few - limit).abs() > 0.4 * limit).all()


@pytest.mark.parametrize(("k", "size", "width"), [(1, 4, 3), (3, 20, 100), (2, 33, 7)])
def test_batches_of_one_size_give_identical_bits_together(k: int, size: int, width: int) -> None:
    generator = torch.Generator().manual_seed(k)
    source, target = torch.randn(k, size, width, generator=generator), torch.rand(size, width, generator=generator)
    module: Any = Sinkhorn(iterations=20).build(width, k)
    found = []
    for together in (True, False):
        if not together:
            module._all_transports = lambda costs: [module._transport(cost) for cost in costs]
        ours, theirs = source.clone().requires_grad_(), target.clone().requires_grad_()
        gaps = module(ours, theirs)
        found.append((gaps.detach(), *torch.autograd.grad(gaps.sum(), (ours, theirs))))
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))
