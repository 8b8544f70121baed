"""Sharpmax, by sorting and by Newton's iteration, agrees with the closed form in exact arithmetic."""

import decimal
import importlib
import itertools
from decimal import Decimal

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from msda_bench.functional import sharpmax

module = importlib.import_module("msda_bench.functional.simplex")
LENGTHS = st.integers(1, 40) | st.integers(module.FEW + 1, 300)
INF = float("inf")


def exactly(z):
    """The weights of finite scores (k,) in 60 digits, from the longest prefix above its own threshold."""
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


def spaced(k, ratio, reach):
    """Scores with geometrically growing gaps, of which each round of an iteration may drop only a few."""
    gaps = ratio ** torch.arange(k, dtype=torch.float64)
    return -reach * gaps / gaps.max()


def levels(sizes, gaps):
    """Scores with ties at a few heights."""
    heights = itertools.accumulate(gaps, lambda height, gap: height - gap, initial=0.0)
    return torch.cat([torch.full((n,), h, dtype=torch.float64) for n, h in zip(sizes, heights, strict=False)])


def normal(k, scale, seed):
    return torch.randn(k, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)) * scale


def crowd(k, height):
    """One score, and many just above the height without weight, which need the most rounds."""
    return torch.cat([torch.zeros(1, dtype=torch.float64), torch.full((k,), height - 1, dtype=torch.float64)])


gaps = st.floats(1e-12, 1.0) | st.sampled_from([1e-16, 1e-9, 0.5, 1 - 1e-12, 1.0, 1 + 1e-12])
hard = st.one_of(
    st.builds(spaced, LENGTHS, st.floats(1.0, 4.0), st.sampled_from([1e-6, 0.1, 0.5, 1.0, 1.5, 100.0])),
    st.builds(levels, st.lists(st.integers(1, 60), min_size=1, max_size=6), st.lists(gaps, min_size=6, max_size=6)),
    st.builds(crowd, LENGTHS, st.floats(1e-6, 1e-2)),
    st.builds(normal, LENGTHS, st.sampled_from([1e-8, 1e-3, 0.1, 0.3, 1.0, 30.0]), st.integers(0, 2**31 - 1)),
)


@settings(max_examples=100)
@given(hard, st.sampled_from([torch.float64, torch.float32, torch.bfloat16, torch.float16]))
def test_equals_the_closed_form_up_to_rounding(z, dtype):
    z = z.to(dtype)
    expected, alpha = exactly(z), sharpmax(z)
    assert alpha.dtype == dtype
    # The dtype's rounding, once, and that of float64: in k differences of numbers of size 1; where few are sorted, in
    # the root of what may nearly cancel.
    slack = len(z) * 1e-15 if len(z) > module.FEW else 1e-7
    tolerance = (expected * torch.finfo(dtype).eps).clamp(min=torch.finfo(dtype).tiny) + slack
    assert ((alpha.double() - expected).abs() <= tolerance).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("k", [8, 40, 4096])
def test_a_row_does_not_depend_on_other_rows(k, dtype):
    few = module.BLOCK // k + 3 if k > 1000 else 3
    z = torch.randn(few + 1, k, dtype=dtype, generator=torch.Generator().manual_seed(0))
    z *= torch.logspace(-6, 1, len(z))[:, None]
    z[1, 7], z[2, 3], z[-2, 5] = float("nan"), INF, -INF
    singly = torch.stack([sharpmax(row) for row in z])
    for together in (sharpmax(z), sharpmax(z.T.contiguous(), dim=0).T, torch.func.vmap(sharpmax)(z)):
        assert torch.equal(together.nan_to_num(-1), singly.nan_to_num(-1))
    assert singly.isnan().any(-1).nonzero().tolist() == [[1]]


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("repeats", [1, 32])
def test_tied_and_infinite_scores_share_the_weight(dtype, repeats):
    cases = [[0, 0], [5, 4], [INF, 0], [INF, INF], [-INF, 0], [-INF, -INF], [6e4, -6e4]]
    for pair in cases + ([] if dtype == torch.float16 else [[1e30, -1e30], [-1e30, -1e30]]):
        z = torch.tensor(pair, dtype=dtype).repeat(repeats)
        taken = (z == z.max()).to(dtype)
        assert torch.equal(sharpmax(z), taken / taken.sum())
    assert sharpmax(torch.tensor([-7.5], dtype=dtype)).tolist() == [1.0]


def test_an_empty_batch_gives_an_empty_result_and_an_empty_dimension_is_refused():
    assert sharpmax(torch.zeros(0, 3)).shape == (0, 3)
    with pytest.raises(TypeError, match="floating point"):
        sharpmax(torch.tensor([1, 2]))
    with pytest.raises(ValueError, match="empty"):
        sharpmax(torch.zeros(0, 3), dim=0)


@pytest.mark.parametrize("scale", [0.05, 0.3, 1.0, 4.0])
@pytest.mark.parametrize("k", [1, 2, 7, 40])
def test_first_and_second_derivatives_pass_gradcheck(k, scale):
    z = normal(2 * k, scale, 2).view(2, k).requires_grad_()
    assert torch.autograd.gradcheck(sharpmax, z)
    assert torch.autograd.gradgradcheck(sharpmax, z)


def test_derivatives_are_equal_with_smaller_blocks(monkeypatch):
    z = normal(2 * 3 * 40, 0.3, 3).view(2, 3, 40).requires_grad_()
    upstream = normal(2 * 3 * 40, 1.0, 4).view(2, 3, 40)

    def derivatives():
        (first,) = torch.autograd.grad(sharpmax(z), z, upstream, create_graph=True)
        return first, torch.autograd.grad(first.square().sum(), z)[0]

    whole = derivatives()
    monkeypatch.setattr(module, "BLOCK", 100)
    for blocks, expected in zip(derivatives(), whole, strict=True):
        assert torch.equal(blocks, expected)


@pytest.mark.parametrize("k", [5, 40])
def test_can_be_stacked_and_nested(k):
    z = normal(2 * 3 * k, 0.3, 5).view(2, k, 3)

    def weighted(row):
        return (sharpmax(row) * torch.arange(float(k))).sum()

    rows = z.movedim(1, -1).reshape(-1, k)
    for derivative in (torch.func.grad(weighted), torch.func.jacrev(torch.func.jacrev(weighted))):
        singly = torch.stack([derivative(row) for row in rows])
        nested = torch.func.vmap(torch.func.vmap(derivative, in_dims=1))(z)
        torch.testing.assert_close(nested.flatten(0, 1), singly, rtol=1e-12, atol=1e-13)
