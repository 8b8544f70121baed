"""Gradient reversal."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from msda_bench.functional import reverse_gradient


@given(st.floats(-(2.0**126), 2.0**126, width=32))
def test_value_is_unchanged_bit_for_bit_and_gradient_is_negated(value: float) -> None:
    x = torch.tensor(value, requires_grad=True)
    y = reverse_gradient(x)
    y.backward()
    assert y.item() == value
    assert x.grad is not None
    assert x.grad.item() == -1
