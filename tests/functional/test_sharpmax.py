"""Sharpmax against bisection, its own optimality, and finite differences."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from msda_bench.functional import sharpmax


def bisection(z: Tensor) -> Tensor:
    """The paper's way: halve [min - 1, max] until ||[z - nu]_+||_2 = 1."""
    z = z.double() - z.double().max()
    low, high = z.min() - 1, z.max()
    for _ in range(200):
        middle = (low + high) / 2
        if (z - middle).clamp(min=0).norm() > 1:
            low = middle
        else:
            high = middle
    above = (z - high).clamp(min=0)
    return above / above.sum()


scores = st.lists(st.floats(-1e3, 1e3, allow_nan=False, width=32), min_size=1, max_size=40)
scales = st.sampled_from([1e-4, 1e-2, 0.3, 1.0, 30.0])


@settings(max_examples=300, deadline=None)
@given(scores, scales)
def test_agrees_with_bisection(values: list[float], scale: float) -> None:
    z = torch.tensor(values, dtype=torch.float64) * scale / 1e3
    assert torch.allclose(sharpmax(z), bisection(z), atol=1e-7)


@settings(max_examples=200, deadline=None)
@given(scores, st.integers(0, 2**31 - 1))
def test_minimises_the_bound(values: list[float], seed: int) -> None:
    z = torch.tensor(values, dtype=torch.float64) / 100

    def bound(alpha: Tensor) -> Tensor:
        return torch.linalg.vector_norm(alpha, dim=-1) - alpha @ z

    noise = -torch.rand(50, len(values), dtype=torch.float64, generator=torch.Generator().manual_seed(seed)).log()
    rivals = noise / noise.sum(-1, keepdim=True)
    assert (bound(sharpmax(z)) <= bound(rivals) + 1e-9).all()


@settings(max_examples=200, deadline=None)
@given(scores, st.floats(-1e3, 1e3))
def test_is_on_the_simplex_and_ignores_a_constant(values: list[float], constant: float) -> None:
    z = torch.tensor(values, dtype=torch.float64)
    alpha = sharpmax(z)
    assert (alpha >= 0).all()
    assert alpha.sum().item() == pytest.approx(1)
    assert torch.allclose(sharpmax(z + constant), alpha, atol=1e-9)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_one_score_takes_all(dtype: torch.dtype) -> None:
    alpha = sharpmax(torch.tensor([-7.5], dtype=dtype))
    assert alpha.tolist() == [1.0]
    assert alpha.dtype == dtype


def test_ties_share_equally() -> None:
    assert sharpmax(torch.full((8,), 3.0)).tolist() == [0.125] * 8
    alpha = sharpmax(torch.tensor([2.0, 5.0, 5.0, 5.0]))
    assert alpha[0] == 0
    assert torch.allclose(alpha[1:], torch.full((3,), 1 / 3))


def test_scores_exactly_one_below_the_largest_get_nothing() -> None:
    assert sharpmax(torch.tensor([0.0, -1.0, -1.0, -1.0])).tolist() == [1.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_huge_and_infinite_scores(dtype: torch.dtype) -> None:
    inf = float("inf")
    cases = {
        (1e30, -1e30, 0.0): [1.0, 0.0, 0.0],
        (1e30, 1e30, -1e30): [0.5, 0.5, 0.0],
        (-1e30, -1e30): [0.5, 0.5],
        (inf, 0.0, inf): [0.5, 0.0, 0.5],
        (-inf, 0.0): [0.0, 1.0],
        (-inf, -inf): [0.5, 0.5],
    }
    for z, expected in cases.items():
        assert sharpmax(torch.tensor(z, dtype=dtype)).tolist() == pytest.approx(expected)


def test_nan_stays_nan() -> None:
    assert sharpmax(torch.tensor([0.0, float("nan")])).isnan().all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_many_scores(dtype: torch.dtype) -> None:
    z = torch.randn(100_000, dtype=dtype, generator=torch.Generator().manual_seed(0))
    tolerance = 1e-6 if dtype == torch.float32 else 1e-9
    for scale in (1e-3, 1.0):
        assert torch.allclose(sharpmax(z * scale).double(), bisection(z * scale), atol=tolerance, rtol=1e-3)
    assert sharpmax(torch.zeros(100_000, dtype=dtype)).sum().item() == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("dim", [0, 1, 2, -1, -2])
def test_any_dimension_of_any_batch(dim: int) -> None:
    z = torch.randn(3, 4, 5, generator=torch.Generator().manual_seed(1))
    alpha = sharpmax(z, dim=dim)
    assert alpha.shape == z.shape
    rows = alpha.movedim(dim, -1).reshape(-1, z.shape[dim])
    singly = torch.stack([sharpmax(row) for row in z.movedim(dim, -1).reshape(-1, z.shape[dim])])
    assert torch.equal(rows, singly)


def test_empty_batch_is_an_empty_answer() -> None:
    assert sharpmax(torch.zeros(0, 3)).shape == (0, 3)


def test_refuses_what_it_is_not_defined_for() -> None:
    with pytest.raises(TypeError, match="floating point"):
        sharpmax(torch.tensor([1, 2]))
    with pytest.raises(ValueError, match="empty"):
        sharpmax(torch.zeros(3, 0))


@pytest.mark.parametrize("scale", [0.05, 0.3, 1.0, 4.0])
@pytest.mark.parametrize("k", [1, 2, 7])
def test_first_and_second_derivatives(k: int, scale: float) -> None:
    z = torch.randn(4, k, dtype=torch.float64, generator=torch.Generator().manual_seed(2)) * scale
    z.requires_grad_()
    assert torch.autograd.gradcheck(sharpmax, z)
    assert torch.autograd.gradgradcheck(sharpmax, z)


def test_jacobian_is_the_appendix_matrix() -> None:
    z = torch.tensor([0.3, 0.1, -0.2, -3.0], dtype=torch.float64)
    alpha = sharpmax(z)
    support = (alpha > 0).double()
    size = support.sum()
    nu = ((z * support).sum() - (((z * support).sum()) ** 2 - size * ((z**2 * support).sum() - 1)).sqrt()) / size
    total = ((z - nu) * support).sum()
    root = ((z * support).sum() ** 2 - size * ((z**2 * support).sum() - 1)).sqrt()
    tilt = support / size - alpha
    expected = (support.diag() - support.outer(support) / size) / total + size / root * tilt.outer(tilt)
    assert torch.allclose(torch.autograd.functional.jacobian(sharpmax, z), expected)


def test_can_be_stacked() -> None:
    z = torch.randn(6, 5, generator=torch.Generator().manual_seed(3))

    def weighted(row: Tensor) -> Tensor:
        return (sharpmax(row) * torch.arange(5.0)).sum()

    stacked = torch.func.vmap(torch.func.grad(weighted))(z)
    assert torch.allclose(stacked, torch.stack([torch.func.grad(weighted)(row) for row in z]))
