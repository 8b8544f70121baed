"""Sparse rows agree with their dense matrix, and a reversed gradient keeps the value."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from msda_bench.functional import SparseRows, reverse_gradient


def sparse(dense):
    rows, columns = dense.nonzero(as_tuple=True)
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), torch.bincount(rows, minlength=len(dense)).cumsum(0)])
    return SparseRows(columns, dense[rows, columns], offsets, dense.shape[1])


@settings(max_examples=40)
@given(st.integers(1, 8), st.integers(1, 9), st.integers(0, 1000), st.data())
def test_taking_rows_equals_dense_indexing(n, width, seed, data):
    generator = torch.Generator().manual_seed(seed)
    dense = torch.randn(n, width, generator=generator) * (torch.rand(n, width, generator=generator) < 0.4)
    rows = torch.tensor(data.draw(st.lists(st.integers(0, n - 1), max_size=12)), dtype=torch.int64)
    whole = sparse(dense)
    taken = whole.take(rows)
    assert len(taken) == len(rows)
    assert torch.equal(taken.to_dense(), dense[rows])
    assert torch.equal(whole.to_dense(), dense)


def test_repeated_columns_add_up():
    rows = SparseRows(torch.tensor([1, 1]), torch.tensor([2.0, 3.0]), torch.tensor([0, 2]), 3)
    assert rows.to_dense().tolist() == [[0.0, 5.0, 0.0]]


@settings(max_examples=40)
@given(st.floats(-(2.0**126), 2.0**126, width=32))
def test_a_reversed_gradient_leaves_the_value_unchanged_bit_for_bit(value):
    x = torch.tensor(value, requires_grad=True)
    y = reverse_gradient(x)
    y.backward()
    assert y.item() == value
    assert x.grad.item() == -1
