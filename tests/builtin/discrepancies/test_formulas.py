"""Discrepancies with a closed formula agree with it and its gradient; and properties of all discrepancies."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import pytest
import torch
from torch import Tensor

from msda_bench.api import Discrepancy
from msda_bench_builtin.discrepancies import (
    Coral,
    Mmd,
    Moments,
    NoDiscrepancy,
    Sinkhorn,
    SlicedWasserstein,
    SpectralL2,
)
from tests.builtin.discrepancies.samples import features
from tests.builtin.gradients import same_gradient

Formula = Callable[[Tensor, Tensor], Tensor]


def coral(x: Tensor, y: Tensor) -> Tensor:
    return (torch.cov(x.T) - torch.cov(y.T)).square().sum() / (4 * 5 * 5)


def mmd(x: Tensor, y: Tensor) -> Tensor:
    both = torch.cat([x, y])
    squares = (both.unsqueeze(0) - both.unsqueeze(1)).square().sum(-1)
    width = squares.detach().sum() / (16 * 15)
    kernel = torch.stack([torch.exp(-squares / (width * scale)) for scale in (0.5, 1.0, 2.0)]).mean(0)
    return kernel[:8, :8].mean() + kernel[8:, 8:].mean() - 2 * kernel[:8, 8:].mean()


def spectral(x: Tensor, y: Tensor) -> Tensor:
    return torch.linalg.eigvalsh(y.T @ y - x.T @ x).abs().amax()


def moments(orders: int) -> Formula:
    def distance(x: Tensor, y: Tensor) -> Tensor:
        found = torch.zeros((), dtype=torch.float64)
        for order in range(1, orders + 1):
            found = found + sum((((x[:, f] ** order).mean() - (y[:, f] ** order).mean()) ** 2) for f in range(5)) ** 0.5
        return found

    return distance


FORMULAS: dict[str, tuple[Discrepancy, Formula]] = {
    "coral": (Coral(), coral),
    "mmd": (Mmd(kernels=3, factor=2.0), mmd),
    "spectral_l2 sum": (SpectralL2(iterations=500, scale="sum"), spectral),
    "spectral_l2 mean": (SpectralL2(iterations=500), lambda x, y: spectral(x, y) / 8),
    **{f"moments {n}": (Moments(orders=n, pairs="target"), moments(n)) for n in (1, 2, 4)},
    "none": (NoDiscrepancy(), lambda x, y: 0 * x.sum() + 0 * y.sum()),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_each_gap_and_gradient_equal_the_formula(name: str) -> None:
    discrepancy, formula = FORMULAS[name]
    source, target = features()
    gaps = discrepancy.build(5, 3).double()(source, target)
    expected = torch.stack([formula(x, target) for x in source])
    assert torch.allclose(gaps, expected, rtol=1e-6)
    if name != "none":
        same_gradient(gaps.sum(), expected.sum(), (source, target), atol=1e-5)


@pytest.mark.parametrize("k", [1, 3])
def test_moments_of_all_pairs_are_the_distance_of_the_paper(k: int) -> None:
    """Each gap consists of its own pairs, and the mean of the gaps is equation 1 of Peng et al."""
    source, target = features(k=k)
    gaps = Moments().build(5, k)(source, target)
    distance = moments(2)
    for i in range(k):
        others = [distance(source[i], source[j]) for j in range(k) if j != i]
        expected = distance(source[i], target) + (sum(others) / len(others) if others else 0)
        assert gaps[i].item() == pytest.approx(expected.item())
    between = [distance(one, other).item() for one, other in combinations(source, 2)]
    to_target = sum(distance(one, target).item() for one in source) / k
    assert gaps.mean().item() == pytest.approx(to_target + (sum(between) / len(between) if between else 0))


@pytest.mark.parametrize(
    "discrepancy", [Coral(), Mmd(), Moments(), Sinkhorn(), SlicedWasserstein(), SpectralL2()], ids=lambda one: one.name
)
def test_equal_samples_and_equal_points_have_no_gap_and_a_finite_gradient(discrepancy: Discrepancy) -> None:
    _, target = features()
    for sample in (target.detach(), torch.ones(4, 5, dtype=torch.float64)):
        source = sample.expand(3, -1, -1).clone().requires_grad_()
        gaps = discrepancy.build(5, 3).double()(source, sample)
        assert gaps.abs().max() < 1e-6
        (gradient,) = torch.autograd.grad(gaps.sum(), source)
        assert gradient.isfinite().all()


def test_coral_ignores_means_and_batches_of_one_and_none_needs_no_target() -> None:
    source, target = features()
    module = Coral().build(5, 3)
    assert torch.allclose(module(source, target), module(source + 3, target - 2))
    assert module(*features(b=1)).tolist() == [0, 0, 0]
    assert NoDiscrepancy().build(5, 3)(source, None).tolist() == [0, 0, 0]


def test_default_spectral_l2_is_accurate_to_a_thousandth() -> None:
    """Uses the width of the paper's perceptron, where ten iterations have a mean error of 4 %."""
    generator = torch.Generator().manual_seed(0)
    source = torch.randn(12, 20, 100, generator=generator, dtype=torch.float64).relu()
    target = torch.randn(20, 100, generator=generator, dtype=torch.float64).relu()
    gaps = SpectralL2().build(100, 12).double()(source, target)
    exact = torch.linalg.eigvalsh((target.T @ target - source.mT @ source) / 20).abs().amax(-1)
    assert ((gaps - exact).abs() / exact).mean() < 1e-3


def test_spectral_l2_survives_opposite_eigenvalues() -> None:
    source = torch.tensor([[[1.0, 0.0], [0.0, 0.0]]])
    target = torch.tensor([[0.0, 1.0], [0.0, 0.0]])
    assert SpectralL2(scale="sum").build(2, 1)(source, target).item() == pytest.approx(1, rel=1e-5)
