"""Discrepancies with critics: gaps and gradients agree with plain loops, and trained critics approach the distance."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn import functional

from msda_bench.api import Dropout
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


def test_dropout_of_d_as_critics_follows_every_hidden_layer() -> None:
    """The mask is the key's, and a test drops nothing."""
    source, target = (rows.float() for rows in features())
    modules = []
    for rate in (0.5, 0.0):
        torch.manual_seed(0)
        modules.append(ProxyADistance(hidden=(20, 50), dropout=rate).build(5, 3))
    module, plain = modules
    linear, *others = [type(layer).__name__ for layer in module.critics]
    assert others == ["ReLU", "Dropout", linear, "ReLU", "Dropout", linear]
    drops = [layer for layer in module.critics if isinstance(layer, Dropout)]
    assert [layer.rate for layer in drops] == [0.5, 0.5]
    gaps = module(source, target)
    assert torch.equal(gaps, module(source, target))
    for layer in drops:
        layer.key = KEY
    assert not torch.equal(gaps, module(source, target))
    assert torch.equal(module.eval()(source, target), plain(source, target))


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
