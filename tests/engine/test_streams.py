"""Streams depend only on the cell's split and the purpose."""

from __future__ import annotations

from collections.abc import Callable

import torch

from msda_bench.engine.settings import seeded, stream_key
from msda_bench.suite.cell import Cell


def test_a_stream_never_changes(make_cell: Callable[..., Cell]) -> None:
    assert stream_key(make_cell(), "batches").tolist() == [1048993373, -1785199305]


def test_streams_differ_by_purpose_seed_and_target_but_not_by_method(make_cell: Callable[..., Cell]) -> None:
    cell = make_cell("DARN")
    same = stream_key(cell, "batches").tolist()
    assert stream_key(make_cell("MDMN"), "batches").tolist() == same
    others = [
        stream_key(cell, "steps"),
        stream_key(make_cell(seed=1), "batches"),
        stream_key(make_cell(target="a"), "batches"),
    ]
    assert all(other.tolist() != same for other in others)


def test_seeding_is_undone_after_the_block(make_cell: Callable[..., Cell]) -> None:
    before = torch.get_rng_state()
    with seeded(make_cell(), "x"):
        one = torch.rand(3)
    with seeded(make_cell(), "x"):
        two = torch.rand(3)
    assert torch.equal(one, two)
    assert torch.equal(before, torch.get_rng_state())
