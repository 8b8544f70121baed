"""Dropout from a run's own stream."""

from __future__ import annotations

import pytest
import torch

from msda_bench.functional import SparseRows
from msda_bench.layers import Dropout


def keyed(rate: float, *halves: int) -> Dropout:
    layer = Dropout(rate)
    layer.key = torch.tensor(halves, dtype=torch.int32)
    return layer


def test_dropout_keeps_the_expectation() -> None:
    out = keyed(0.7, 1, 2)(torch.ones(400, 500))
    assert isinstance(out, torch.Tensor)
    assert out.mean().item() == pytest.approx(1, abs=0.02)
    assert sorted(set(out.unique().tolist())) == pytest.approx([0, 1 / 0.3])


def test_same_key_same_mask_other_key_other_mask() -> None:
    x = torch.ones(30, 40)
    assert torch.equal(keyed(0.5, 1, 2)(x), keyed(0.5, 1, 2)(x))
    assert not torch.equal(keyed(0.5, 1, 2)(x), keyed(0.5, 1, 3)(x))


def test_sparse_and_dense_input_lose_identical_elements() -> None:
    generator = torch.Generator().manual_seed(0)
    dense = torch.rand(20, 50, generator=generator) * (torch.rand(20, 50, generator=generator) < 0.3)
    nonzero = dense.nonzero()
    lengths = torch.bincount(nonzero[:, 0], minlength=20)
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)])
    rows = SparseRows(nonzero[:, 1], dense[nonzero[:, 0], nonzero[:, 1]], offsets, 50)
    layer = keyed(0.7, 3, 4)
    out = layer(rows)
    assert isinstance(out, SparseRows)
    assert len(out.columns) < len(rows.columns)
    assert torch.equal(out.to_dense(), layer(dense))


def test_dropout_does_nothing_in_evaluation_or_at_rate_zero() -> None:
    x = torch.rand(3, 4)
    assert keyed(0.5, 1, 1).eval()(x) is x
    assert keyed(0.0, 1, 1)(x) is x


def test_leaves_the_global_generator_alone() -> None:
    before = torch.get_rng_state()
    keyed(0.5, 1, 1)(torch.ones(10))
    assert torch.equal(before, torch.get_rng_state())
