"""Batches: uniform, with replacement, from the right rows, the same every time."""

from __future__ import annotations

import torch
from scipy import stats

from msda_bench.engine.draws import Sampler
from msda_bench.engine.prepare import TrainingData


def keys(*seeds: int) -> torch.Tensor:
    return torch.tensor([[seed, 6] for seed in seeds], dtype=torch.int32)


def data() -> TrainingData:
    rows = {"a": torch.arange(7), "b": torch.arange(7, 20), "t": torch.arange(20, 50)}
    return TrainingData(torch.zeros(50, 1), torch.zeros(50), rows, "t")


def test_each_group_draws_from_its_own_domains() -> None:
    drawn = Sampler(data(), [("a",), ("b",), ("t",)], 20, 30, keys(1, 2, 3)).epoch(0)[0]
    assert drawn.shape == (30, 3, 20)
    for group, rows in enumerate([range(7), range(7, 20), range(20, 50)]):
        assert set(drawn[:, group].flatten().tolist()) == set(rows)


def test_pooled_domains_are_drawn_in_proportion_to_their_sizes() -> None:
    drawn = Sampler(data(), [("t", "a")], 500, 40, keys(4)).epoch(0)[0].flatten()
    counts = torch.bincount(drawn, minlength=50)
    assert counts[7:20].sum() == 0
    wanted = torch.cat([counts[:7], counts[20:]])
    assert stats.chisquare(wanted.numpy()).pvalue > 1e-4


def test_epochs_differ_and_are_reproducible() -> None:
    sampler = Sampler(data(), [("a",), ("b",)], 10, 10, keys(5, 6))
    assert torch.equal(sampler.epoch(3)[0], Sampler(data(), [("a",), ("b",)], 10, 10, keys(5, 6)).epoch(3)[0])
    assert not torch.equal(sampler.epoch(3)[0], sampler.epoch(4)[0])


def test_full_batches_take_groups_in_order_and_repeat_smaller_ones() -> None:
    groups = [("a",), ("b",), ("a", "b")]
    taken = Sampler(data(), groups, 20, 3, keys(1, 2, 3), whole=True).epoch(5)[0]
    assert taken.shape == (3, 3, 20)
    for step in taken.tolist():
        assert step == [[*range(7), *range(7), *range(6)], [*range(7, 20), *range(7, 14)], list(range(20))]


def test_a_groups_batches_do_not_depend_on_other_groups() -> None:
    both = Sampler(data(), [("a",), ("b",), ("t",)], 10, 10, keys(1, 2, 3)).epoch(2)[0]
    alone = Sampler(data(), [("b",)], 10, 10, keys(2)).epoch(2)[0]
    assert torch.equal(both[:, 1], alone[:, 0])
