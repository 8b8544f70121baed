"""Sliced Wasserstein distances agree with scipy, one direction at a time."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
import torch

from msda_bench.functional import normal
from msda_bench_builtin.discrepancies import SlicedWasserstein
from tests.builtin.discrepancies.samples import features


def directions(key: torch.Tensor, count: int, d: int) -> np.ndarray:
    drawn = normal(key, (count, d)).double().numpy()
    found: np.ndarray = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    return found


@pytest.mark.parametrize("order", [1, 2])
def test_the_distance_equals_scipys(order: int) -> None:
    source, target = features()
    module = SlicedWasserstein(directions=6, order=order).build(5, 3)
    module.key = torch.tensor([3, 4], dtype=torch.int32)
    gaps = module(source, target)
    for i in range(3):
        costs = []
        for along in directions(module.key, 6, 5):
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


def test_the_key_draws_the_directions() -> None:
    source, target = features()
    module = SlicedWasserstein(directions=4).build(5, 3)
    found = []
    for key in ([1, 2], [1, 3], [1, 2]):
        module.key = torch.tensor(key, dtype=torch.int32)
        found.append(module(source, target).tolist())
    assert found[0] == found[2] != found[1]
