"""The Sinkhorn divergence agrees with a plain loop, sliced Wasserstein distances with scipy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
import scipy.spatial.distance
import scipy.special
import scipy.stats
import torch

from msda_bench.functional import normal
from msda_bench_builtin.discrepancies import Sinkhorn, SlicedWasserstein
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


@pytest.mark.parametrize("order", [1, 2])
def test_the_distance_equals_scipys(order: int) -> None:
    source, target = features()
    module = SlicedWasserstein(directions=6, order=order).build(5, 3)
    module.key = torch.tensor([3, 4], dtype=torch.int32)
    gaps = module(source, target)
    drawn = normal(module.key, (6, 5)).double().numpy()
    for i in range(3):
        costs = []
        for along in drawn / np.linalg.norm(drawn, axis=1, keepdims=True):
            ours, theirs = source[i].detach().numpy() @ along, target.detach().numpy() @ along
            if order == 1:
                costs.append(scipy.stats.wasserstein_distance(ours, theirs))
            else:  # the best assignment of squared costs, whatever the order
                cost = (ours[:, None] - theirs[None]) ** 2
                rows, columns = scipy.optimize.linear_sum_assignment(cost)
                costs.append(cost[rows, columns].mean())
        assert gaps[i].item() == pytest.approx(np.mean(costs), rel=1e-6)


def test_the_gradient_passes_gradcheck() -> None:
    source, target = features(k=2, b=4, d=3)
    module = SlicedWasserstein(directions=5).build(3, 2)
    assert torch.autograd.gradcheck(module, (source, target))
