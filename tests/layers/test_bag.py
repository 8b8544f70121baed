"""The bag-of-words layer against a dense product."""

from __future__ import annotations

import functools

import pytest
import torch

from msda_bench.functional import SparseRows
from msda_bench.layers import BagLinear
from msda_bench.layers.bag import bag_product


@pytest.mark.parametrize("sparse_gradient", [False, True])
def test_sparse_rows_give_the_product_and_gradient_of_dense_rows(*, sparse_gradient: bool) -> None:
    torch.manual_seed(0)
    layer = BagLinear(6, 4)
    layer.product = functools.partial(bag_product, sparse_gradient=sparse_gradient)
    rows = SparseRows(torch.tensor([0, 5, 2]), torch.tensor([1.0, 2.0, -3.0]), torch.tensor([0, 2, 2, 3]), 6)
    sparse_out = layer(rows)
    sparse_out.square().sum().backward()
    assert layer.weight.grad is not None
    sparse_weight = layer.weight.grad.to_dense() if sparse_gradient else layer.weight.grad
    assert layer.weight.grad.is_sparse == sparse_gradient
    layer.zero_grad()
    dense_out = layer(rows.to_dense())
    dense_out.square().sum().backward()
    assert torch.allclose(sparse_out, dense_out)
    assert torch.allclose(sparse_weight, layer.weight.grad)


def test_initial_weights_have_the_distribution_of_torchs_linear_layer() -> None:
    layer = BagLinear(400, 30)
    assert layer.weight.abs().max() <= 1 / 20
    assert layer.weight.std().item() == pytest.approx(1 / 20 / 3**0.5, rel=0.05)
