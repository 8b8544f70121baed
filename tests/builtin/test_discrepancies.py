"""Discrepancies agree with their formulae, with plain loops and with scipy, and so do their gradients."""

from functools import partial

import numpy as np
import pytest
import scipy.optimize
import scipy.spatial.distance
import scipy.special
import torch
from torch.nn import functional

from msda_bench.api import Dropout
from msda_bench.functional import normal, uniform
from msda_bench_builtin.discrepancies import (
    Coral,
    Mmd,
    Moments,
    NoDiscrepancy,
    ProxyADistance,
    Sinkhorn,
    SlicedWasserstein,
    SpectralL2,
    Wasserstein,
)
from tests.builtin.formulas import mmd, moment_distance, same_gradient

pytestmark = pytest.mark.usefixtures("double")

KEY = torch.tensor([5, 6], dtype=torch.int32)


def features(k=3, b=8, d=5):
    """Source features (k, b, d), each source farther away, and target features (b, d), with gradients."""
    torch.manual_seed(0)
    shift = torch.arange(float(k)).view(k, 1, 1)
    source = torch.randn(k, b, d) * (1 + shift) + shift
    return source.requires_grad_(), torch.randn(b, d).requires_grad_()


def coral(x, y):
    return (torch.cov(x.T) - torch.cov(y.T)).square().sum() / (4 * 5 * 5)


def spectral(x, y):
    return torch.linalg.eigvalsh(y.T @ y - x.T @ x).abs().amax()


FORMULAS = {
    "coral": (Coral(), coral),
    "mmd": (Mmd(kernels=3, factor=2.0), lambda x, y: mmd(x, y, 3) / 3),
    "spectral_l2 sum": (SpectralL2(iterations=500, scale="sum"), spectral),
    "spectral_l2 mean": (SpectralL2(iterations=500), lambda x, y: spectral(x, y) / 8),
    **{f"moments {n}": (Moments(orders=n, pairs="target"), partial(moment_distance, orders=n)) for n in (1, 2, 4)},
    "none": (NoDiscrepancy(), lambda x, y: 0 * x.sum() + 0 * y.sum()),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_each_gap_and_gradient_equal_the_formula(name):
    discrepancy, formula = FORMULAS[name]
    source, target = features()
    gaps = discrepancy.build(5, 3).double()(source, target)
    expected = torch.stack([formula(x, target) for x in source])
    assert torch.allclose(gaps, expected, rtol=1e-6)
    if name != "none":
        same_gradient(gaps.sum(), expected.sum(), (source, target), atol=1e-5)


@pytest.mark.parametrize("k", [1, 3])
def test_moments_of_all_pairs_are_the_distance_of_the_paper(k):
    """Each gap consists of its own pairs, so that the mean of the gaps is equation 1 of Peng et al."""
    source, target = features(k=k)
    gaps = Moments().build(5, k)(source, target)
    for i in range(k):
        others = [moment_distance(source[i], source[j], 2) for j in range(k) if j != i]
        expected = moment_distance(source[i], target, 2) + (sum(others) / len(others) if others else 0)
        assert gaps[i].item() == pytest.approx(expected.item())


@pytest.mark.parametrize("discrepancy", [Coral(), Mmd(), Moments(), Sinkhorn(), SlicedWasserstein(), SpectralL2()])
def test_equal_samples_and_equal_points_have_no_gap_and_a_finite_gradient(discrepancy):
    _, target = features()
    for sample in (target.detach(), 1e-170 * target.detach(), torch.ones(4, 5)):
        source = sample.expand(3, -1, -1).clone().requires_grad_()
        gaps = discrepancy.build(5, 3).double()(source, sample)
        assert gaps.abs().max() < 1e-6
        (gradient,) = torch.autograd.grad(gaps.sum(), source)
        assert gradient.isfinite().all()


def test_a_batch_of_one_has_no_covariance_for_coral():
    assert Coral().build(5, 3)(*features(b=1)).tolist() == [0, 0, 0]


def test_default_spectral_l2_is_accurate_to_a_thousandth_and_survives_opposite_eigenvalues():
    """Uses the width of the paper's perceptron, where ten iterations have a mean error of 4 %."""
    torch.manual_seed(0)
    source = torch.randn(12, 20, 100).relu()
    target = torch.randn(20, 100).relu()
    gaps = SpectralL2().build(100, 12).double()(source, target)
    exact = torch.linalg.eigvalsh((target.T @ target - source.mT @ source) / 20).abs().amax(-1)
    assert ((gaps - exact).abs() / exact).mean() < 1e-3
    source, target = torch.tensor([[[1.0, 0.0], [0.0, 0.0]], [[0.0, 1.0], [0.0, 0.0]]])
    assert SpectralL2(scale="sum").build(2, 1).double()(source[None], target).item() == pytest.approx(1, rel=1e-5)


def entropic(x, y, epsilon, rounds=400):
    """OT_eps by plain alternating updates: the sum of both potentials' means."""
    cost = scipy.spatial.distance.cdist(x, y, "sqeuclidean") / 2
    f, g = np.zeros(len(x)), np.zeros(len(y))
    for _ in range(rounds):
        f = -epsilon * (scipy.special.logsumexp((g[None] - cost) / epsilon, axis=1) - np.log(len(y)))
        g = -epsilon * (scipy.special.logsumexp((f[:, None] - cost) / epsilon, axis=0) - np.log(len(x)))
    return float(f.mean() + g.mean())


def test_the_divergence_equals_a_plain_loop_and_its_gradient_is_that_of_the_limit():
    """Compares with central differences at fixed regularisation."""
    source, target = features()
    gaps = Sinkhorn(blur=0.2, iterations=300).build(5, 3)(source, target)
    (gradient,) = torch.autograd.grad(gaps.sum(), source)
    y = target.detach().numpy()
    for i in range(3):
        x = source[i].detach().numpy()
        epsilon = 0.2 * scipy.spatial.distance.cdist(x, y, "sqeuclidean").mean() / 2
        around = entropic(y, y, epsilon) / 2

        def divergence(x, epsilon=epsilon, around=around):
            return entropic(x, y, epsilon) - entropic(x, x, epsilon) / 2 - around

        assert gaps[i].item() == pytest.approx(divergence(x), rel=1e-6)
        for place in ((0, 0), (2, 1)):
            step = np.zeros_like(x)
            step[place] = 1e-5
            slope = (divergence(x + step) - divergence(x - step)) / 2e-5
            assert gradient[i][place].item() == pytest.approx(slope, abs=1e-6)


@pytest.mark.parametrize("order", [1, 2])
def test_the_distance_is_that_of_the_best_assignment_and_its_gradient_passes_gradcheck(order):
    source, target = features()
    module = SlicedWasserstein(directions=6, order=order).build(5, 3)
    module.key = torch.tensor([3, 4], dtype=torch.int32)
    gaps = module(source, target)
    drawn = normal(module.key, (6, 5)).double().numpy()
    for i in range(3):
        costs = []
        for along in drawn / np.linalg.norm(drawn, axis=1, keepdims=True):
            ours, theirs = source[i].detach().numpy() @ along, target.detach().numpy() @ along
            cost = abs(ours[:, None] - theirs[None]) ** order
            costs.append(cost[scipy.optimize.linear_sum_assignment(cost)].mean())
        assert gaps[i].item() == pytest.approx(np.mean(costs), rel=1e-6)
    assert torch.autograd.gradcheck(module, features(k=2, b=4))


def apply(module, i, x):
    """The i-th critic alone."""
    for layer in module.critics:
        x = x @ layer.weight[i] + layer.bias[i] if hasattr(layer, "weight") else layer(x)
    return x.squeeze(-1)


@pytest.mark.parametrize("hidden", [(), (7, 4)])
@pytest.mark.parametrize("sign", ["text", "code"])
def test_d_a_equals_the_critics_logistic_loss(hidden, sign):
    """The gap is 2 - loss, or the loss itself with the code's sign; features maximise the loss, critics minimise it."""
    source, target = features()
    torch.manual_seed(0)
    module = ProxyADistance(hidden=hidden, sign=sign).build(5, 3)
    gaps = module(source, target)
    losses = []
    for i in range(3):
        logits = apply(module, i, torch.cat([source[i], target]))
        labels = torch.cat([torch.ones(8), torch.zeros(8)])
        each = functional.binary_cross_entropy_with_logits(logits, labels, reduction="none")
        losses.append(each[:8].mean() + each[8:].mean())
    loss = torch.stack(losses)
    assert torch.allclose(gaps, 2 - loss if sign == "text" else loss)
    same_gradient(gaps.sum(), -loss.sum(), (source, target))
    same_gradient(gaps.sum(), loss.sum(), module.parameters())


def test_dropout_of_d_as_critics_follows_every_hidden_layer():
    """The mask is the key's, and a test drops nothing."""
    source, target = features()
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
def test_wasserstein_equals_plain_loops(hidden, weight):
    """The gap, and the separate gradients of distance and penalty."""
    source, target = features()
    torch.manual_seed(0)
    module = Wasserstein(hidden=hidden, penalty=weight).build(5, 3)
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
