"""Compiled dropout equals plain dropout bit for bit."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from msda_bench.engine.compiled import compiled_dropout
from msda_bench.layers.step_key import dropout

halves = st.integers(-(2**31), 2**31 - 1)


@given(halves, halves, st.sampled_from([0.1, 0.5, 0.7]), st.integers(0, 70))
def test_compiled_dropout_equals_the_plain_one_bit_for_bit(high: int, low: int, rate: float, size: int) -> None:
    key = torch.tensor([high, low], dtype=torch.int32)
    found = []
    for drop in (dropout, compiled_dropout):
        x = torch.linspace(-2, 3, 3 * size).view(3, size).requires_grad_()
        out = drop(x, key, rate)
        out.square().sum().backward()
        found.append((out, x.grad))
    assert torch.equal(found[0][0], found[1][0])
    assert torch.equal(found[0][1], found[1][1])


def test_compiled_dropout_is_twice_differentiable_in_any_layout() -> None:
    key = torch.tensor([1, 2], dtype=torch.int32)
    x = torch.randn(5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).t().requires_grad_()
    assert torch.equal(compiled_dropout(x, key, 0.4), dropout(x, key, 0.4))
    assert torch.autograd.gradcheck(lambda z: compiled_dropout(z, key, 0.4) ** 2, x)
    assert torch.autograd.gradgradcheck(lambda z: compiled_dropout(z, key, 0.4) ** 2, x)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_non_finite_values_stay_non_finite(value: float) -> None:
    key = torch.tensor([1, 2], dtype=torch.int32)
    x = torch.full((50,), value)
    assert torch.equal(compiled_dropout(x, key, 0.5).isfinite(), dropout(x, key, 0.5).isfinite())
