"""Sharpmax of many scores, which Newton's iteration finds, against the closed form in exact arithmetic and the sort."""

from __future__ import annotations

import decimal
import importlib
import itertools
import math
from decimal import Decimal

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from msda_bench.functional import sharpmax

module = importlib.import_module("msda_bench.functional.sharpmax")
MANY = st.integers(module.FEW + 1, 300)
INF = float("inf")


def exactly(z: Tensor) -> Tensor:
    """Of finite scores (k,), in 60 digits: the longest prefix whose threshold lies below its least score."""
    with decimal.localcontext(decimal.Context(prec=60)):
        top = Decimal(z.max().item())
        scores = [Decimal(value) - top for value in z.tolist()]
        threshold = total = squares = Decimal(0)
        for size, score in enumerate(sorted(scores, reverse=True), start=1):
            total, squares = total + score, squares + score * score
            inside = total * total - size * (squares - 1)
            if inside < 0 or score <= (total - inside.sqrt()) / size:
                break
            threshold = (total - inside.sqrt()) / size
        above = [max(score - threshold, Decimal(0)) for score in scores]
        whole = sum(above)
        return torch.tensor([float(value / whole) for value in above], dtype=torch.float64)


def spaced(k: int, ratio: float, reach: float) -> Tensor:
    """Gaps below the largest that grow by a ratio: each round of an iteration may drop few of them."""
    gaps = ratio ** torch.arange(k, dtype=torch.float64)
    return -reach * gaps / gaps.max()


def levels(sizes: list[int], gaps: list[float]) -> Tensor:
    """Ties at a few heights."""
    heights = itertools.accumulate(gaps, lambda height, gap: height - gap, initial=0.0)
    return torch.cat([torch.full((n,), h, dtype=torch.float64) for n, h in zip(sizes, heights, strict=False)])


def normal(k: int, scale: float, seed: int) -> Tensor:
    return torch.randn(k, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)) * scale


def crowd(k: int, height: float) -> Tensor:
    """One score, and many just above where they would have no weight: the slowest to find."""
    return torch.cat([torch.zeros(1, dtype=torch.float64), torch.full((k,), height - 1, dtype=torch.float64)])


gaps = st.floats(1e-12, 1.0) | st.sampled_from([1e-16, 1e-9, 0.5, 1 - 1e-12, 1.0, 1 + 1e-12])
hard = st.one_of(
    st.builds(spaced, MANY, st.floats(1.0, 4.0), st.sampled_from([1e-6, 0.1, 0.5, 1.0, 1.5, 100.0])),
    st.builds(levels, st.lists(st.integers(1, 60), min_size=2, max_size=6), st.lists(gaps, min_size=6, max_size=6)),
    st.builds(crowd, MANY, st.floats(1e-6, 1e-2)),
    st.builds(normal, MANY, st.sampled_from([1e-8, 1e-3, 0.1, 0.3, 1.0, 30.0]), st.integers(0, 2**31 - 1)),
).filter(lambda z: len(z) > module.FEW)


@settings(max_examples=300, deadline=None)
@given(hard, st.sampled_from([torch.float64, torch.float32, torch.bfloat16, torch.float16]))
def test_is_the_closed_form_to_rounding(z: Tensor, dtype: torch.dtype) -> None:
    z = z.to(dtype)
    expected, alpha = exactly(z), sharpmax(z)
    assert alpha.dtype == dtype
    # The dtype's rounding, once, and that of float64 in k differences of numbers of size 1.
    tolerance = (expected * torch.finfo(dtype).eps).clamp(min=torch.finfo(dtype).tiny) + len(z) * 1e-15
    assert ((alpha.double() - expected).abs() <= tolerance).all()


@settings(max_examples=200, deadline=None)
@given(hard)
def test_needs_no_more_rounds_than_proven(z: Tensor) -> None:
    alpha = sharpmax(z)
    with pytest.MonkeyPatch.context() as patch:
        # One more than log4(k / enough), since the search in float32 may end on the wrong side of the root.
        patch.setattr(module, "ROUNDS", math.ceil(math.log(len(z) ** 1.5 * 2**26.5, 4)) + 1)
        assert torch.equal(sharpmax(z), alpha)


@settings(max_examples=100, deadline=None)
@given(hard, st.randoms(use_true_random=False))
def test_follows_a_permutation_and_ignores_a_constant(z: Tensor, random: object) -> None:
    order = list(range(len(z)))
    random.shuffle(order)  # type: ignore[attr-defined]
    alpha = sharpmax(z)
    assert torch.allclose(sharpmax(z[order]), alpha[order], rtol=0, atol=len(z) * 1e-15)
    assert torch.allclose(sharpmax(z + 1000), alpha, rtol=0, atol=1e-9)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("k", [40, 4096])
def test_a_row_does_not_depend_on_the_rows_beside_it(k: int, dtype: torch.dtype) -> None:
    few = module.BLOCK // k + 3 if k > 1000 else 3
    z = torch.randn(few + 1, k, dtype=dtype, generator=torch.Generator().manual_seed(0))
    z *= torch.logspace(-6, 1, len(z))[:, None]
    z[1, 7], z[2, 3], z[-2, 5] = float("nan"), INF, -INF
    singly = torch.stack([sharpmax(row) for row in z])
    for together in (sharpmax(z), sharpmax(z.T.contiguous(), dim=0).T, torch.func.vmap(sharpmax)(z)):
        assert torch.equal(together.nan_to_num(-1), singly.nan_to_num(-1))
    assert singly.isnan().any(-1).nonzero().tolist() == [[1]]


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_infinite_scores_are_limits(dtype: torch.dtype) -> None:
    cases = torch.tensor([[0, 0], [INF, 0], [INF, INF], [-INF, 0], [-INF, -INF], [6e4, -6e4]], dtype=dtype)
    for pair in cases:
        z = pair.repeat(32)
        taken = (z == z.max()).to(dtype)
        assert torch.equal(sharpmax(z), taken / taken.sum())


def test_scores_exactly_one_below_the_largest_get_nothing() -> None:
    z = torch.full((1000,), 4.0)
    z[17] = 5.0
    assert sharpmax(z).nonzero().tolist() == [[17]]
    assert sharpmax(z)[17] == 1


@pytest.mark.parametrize("scale", [0.0, 1e-2])
def test_a_million_scores(scale: float) -> None:
    z = torch.randn(1_000_000, generator=torch.Generator().manual_seed(1)) * scale
    torch.testing.assert_close(sharpmax(z), module._by_sorting(z), rtol=1e-6, atol=1e-14)


@pytest.mark.parametrize("k", [2, 5, module.FEW, 100, 1000])
@pytest.mark.parametrize("scale", [1e-3, 0.3, 3.0])
def test_both_ways_agree(k: int, scale: float) -> None:
    z = normal(50 * k, scale, 6).view(50, k)
    torch.testing.assert_close(module._by_newton(z), module._by_sorting(z), rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("scale", [0.05, 0.3, 1.0, 4.0])
def test_first_and_second_derivatives(scale: float) -> None:
    z = normal(2 * 40, scale, 2).view(2, 40).requires_grad_()
    assert torch.autograd.gradcheck(sharpmax, z)
    assert torch.autograd.gradgradcheck(sharpmax, z)


def test_derivatives_block_by_block(monkeypatch: pytest.MonkeyPatch) -> None:
    z = normal(2 * 3 * 40, 0.3, 3).view(2, 3, 40).requires_grad_()
    upstream = normal(2 * 3 * 40, 1.0, 4).view(2, 3, 40)

    def derivatives() -> tuple[Tensor, Tensor]:
        (first,) = torch.autograd.grad(sharpmax(z), z, upstream, create_graph=True)
        return first, torch.autograd.grad(first.square().sum(), z)[0]

    whole = derivatives()
    monkeypatch.setattr(module, "BLOCK", 100)
    for blocks, expected in zip(derivatives(), whole, strict=True):
        assert torch.equal(blocks, expected)


def test_can_be_stacked_and_nested() -> None:
    z = normal(2 * 3 * 40, 0.3, 5).view(2, 40, 3)

    def weighted(row: Tensor) -> Tensor:
        return (sharpmax(row) * torch.arange(40.0)).sum()

    rows = z.movedim(1, -1).reshape(-1, 40)
    for derivative in (torch.func.grad(weighted), torch.func.jacrev(torch.func.jacrev(weighted))):
        singly = torch.stack([derivative(row) for row in rows])
        nested = torch.func.vmap(torch.func.vmap(derivative, in_dims=1))(z)
        torch.testing.assert_close(nested.flatten(0, 1), singly, rtol=1e-12, atol=1e-13)
