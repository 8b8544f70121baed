from __future__ import annotations

import random

import pytest
from fake_training import fake_expansion
from hypothesis import given
from hypothesis import strategies as st

from msda_bench.errors import BenchError
from msda_bench.running.runner import shard_of

CELLS = fake_expansion(methods=("A", "B", "C"), seeds=5).plan.cells


@given(st.integers(1, 40), st.randoms(use_true_random=False))
def test_shards_are_disjoint_cover_all_and_differ_by_one(count: int, order: random.Random) -> None:
    shuffled = list(CELLS)
    order.shuffle(shuffled)
    parts = [shard_of(shuffled, f"{index}/{count}") for index in range(count)]
    assert sorted(cell.key for part in parts for cell in part) == sorted(cell.key for cell in CELLS)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    # Whatever order a machine plans in, it finds the same part.
    assert [set(part) for part in parts] == [set(shard_of(CELLS, f"{index}/{count}")) for index in range(count)]


def test_methods_that_share_a_cell_are_in_the_same_shard() -> None:
    twins = [*CELLS, *CELLS]
    assert [len(shard_of(twins, f"{index}/7")) for index in range(7)] == [
        2 * len(shard_of(CELLS, f"{index}/7")) for index in range(7)
    ]


@pytest.mark.parametrize("text", ["4/4", "0/0", "-1/4", "1", "", "1/4/2", " 1/4", "a/b", "1/1000000000"])
def test_an_invalid_shard_is_refused(text: str) -> None:
    with pytest.raises(BenchError, match="part I of N, counted from 0") as caught:
        shard_of(CELLS, text)
    assert len(caught.value.lines) == 1
