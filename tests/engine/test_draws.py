"""The draws of a run's training, which depend only on its split and their purpose, and the curves of its epochs."""

from __future__ import annotations

import hashlib
from typing import ClassVar

import pytest
import torch
from scipy import stats
from torch import nn

from msda_bench.api import Dropout, Phase, Stage, component
from msda_bench.engine.draws import Draws, Sampler
from msda_bench.engine.fit import Trained
from msda_bench.engine.prepare import TrainingData
from msda_bench.engine.settings import stream_key
from tests.engine.conftest import OwnStep, backbone, make_cell, run_of, swapped, train
from tests.strangers.source_free import SourceFree

KEYS = "63199eb0fe5ecaaf667da43520016171fad4bbab5362dbf4d87503ab063d87bc"
STEPS = 3
KEYED = ["features.0", "features.1", "critic.0", "critic.1", "critic.2"]


def test_a_stream_never_changes_and_depends_on_purpose_seed_and_target_but_not_on_the_method():
    same = [1048993373, -1785199305]
    assert stream_key(make_cell("DARN"), "batches").tolist() == same
    assert stream_key(make_cell("MDMN"), "batches").tolist() == same
    for other in (make_cell(seed=1), make_cell(target="a")):
        assert stream_key(other, "batches").tolist() != same
    assert stream_key(make_cell(), "steps").tolist() != same


@pytest.mark.parametrize("cell", [make_cell("MCD"), make_cell("WDGRL"), swapped(make_cell(), SourceFree)])
def test_no_key_is_used_twice(cell):
    """Keys differ between phases of a step and between stages, too."""
    draws = Draws(run_of(cell, SourceFree), KEYED[1:4])
    epochs = range(3)
    keys = torch.cat([draws.keys(epoch).view(-1, 2) for epoch in epochs])
    passes = torch.stack([draws.passes(epoch, stage) for epoch in epochs for stage in range(draws._stages)])
    images = torch.cat([draws.augment(epoch) for epoch in epochs])
    for drawn in (keys, passes, images):
        assert len(drawn.unique(dim=0)) == len(drawn)


@pytest.mark.parametrize("method", ["DARN", "MCD"])
def test_keys_of_a_first_phase_match_stored_records(method):
    """Methods with one phase keep the keys of engine version 1, compared by digest."""
    keys = Draws(run_of(make_cell(method)), KEYED[:3]).keys(1)[:, 0].contiguous()
    assert hashlib.sha256(keys.numpy().tobytes()).hexdigest() == KEYS


def sampler(groups, batch, steps, *seeds, whole=False):
    rows = {"a": torch.arange(7), "b": torch.arange(7, 20), "t": torch.arange(20, 50)}
    keys = torch.tensor([[seed, 6] for seed in seeds], dtype=torch.int32)
    return Sampler(
        TrainingData(torch.zeros(50, 1), torch.zeros(50), rows, "t"), groups, batch, steps, keys, whole=whole
    )


def test_each_group_draws_from_its_own_domains_and_by_a_stream_of_its_own():
    drawn, places = sampler([("a",), ("b",), ("t",)], 20, 30, 1, 2, 3).epoch(2)
    assert drawn.shape == (30, 3, 20)
    for group, rows in enumerate([range(7), range(7, 20), range(20, 50)]):
        assert set(drawn[:, group].flatten().tolist()) == set(rows)
        assert torch.equal(places[:, group] + rows[0], drawn[:, group])
    alone = sampler([("b",)], 20, 30, 2).epoch(2)[0]
    assert torch.equal(drawn[:, 1], alone[:, 0])


def test_pooled_domains_are_drawn_in_proportion_to_their_sizes():
    counts = torch.bincount(sampler([("t", "a")], 500, 40, 4).epoch(0)[0].flatten(), minlength=50)
    assert counts[7:20].sum() == 0
    assert stats.chisquare(torch.cat([counts[:7], counts[20:]]).numpy()).pvalue > 1e-4


def test_full_batches_take_groups_in_order_and_repeat_smaller_ones():
    taken = sampler([("a",), ("b",), ("a", "b")], 20, 3, 1, 2, 3, whole=True).epoch(5)[0]
    assert taken.shape == (3, 3, 20)
    for step in taken.tolist():
        assert step == [[*range(7), *range(7), *range(6)], [*range(7, 20), *range(7, 14)], list(range(20))]


OnlyDropout = backbone("only_dropout", lambda width, outputs: (Dropout(0.5), nn.Linear(width, outputs), width))


@component
class Repeats(OwnStep):
    name = "repeats"
    masks: ClassVar[list[torch.Tensor]] = []
    keys: ClassVar[list[torch.Tensor]] = []
    stages = (Stage("all", phases=(Phase("critic"), Phase("critic"), Phase("network"))),)

    def step(self, parts, batch, state, phase):
        self.masks.append(parts.features(torch.ones_like(batch.x)))
        self.keys.append(batch.key)
        return super().step(parts, batch, state, phase)


def test_masks_and_keys_differ_between_the_phases_of_a_step():
    cell = make_cell(dataset={"sparse": False}, epochs=1, steps=STEPS)
    drawn = (Repeats.masks, Repeats.keys)
    for seen in drawn:
        seen.clear()
    for stranger in (OnlyDropout, Repeats):
        cell = swapped(cell, stranger)
    assert train([cell], OnlyDropout, Repeats)[0].status == "ok"
    for seen in drawn:
        assert len(seen) == len({tuple(value.flatten().tolist()) for value in seen}) == 3 * STEPS


def logged(risk, gap, weight):
    return torch.tensor([[risk, 2 * risk], [gap, 2 * gap], [weight, 1 - weight]], dtype=torch.float64)


def test_curves_hold_epoch_means_and_a_moving_average():
    trained = Trained(run_of(make_cell("DARN")))
    trained.close_epoch(torch.stack([logged(1, 1, 0.5), logged(float("nan"), 1, 0.5)]))
    assert (trained.diverged_in, trained.curves.risks) == (1, [])
    weights = [0.1, 0.5, 0.9, 0.2, 0.3, 0.4]
    expected = weights[0]
    for weight in weights:
        expected = 0.9 * expected + 0.1 * weight
    for epoch in (0, 1):
        steps = [logged(place, 10 * place, weights[3 * epoch + place]) for place in range(3)]
        trained.close_epoch(torch.stack(steps))
    assert trained.curves.groups == [["a"], ["b"]]
    assert trained.curves.risks == [[1, 2], [1, 2]]
    assert trained.curves.gaps == [[10, 20], [10, 20]]
    assert trained.curves.weights[1] == pytest.approx([expected, 1 - expected], rel=1e-5)
    assert trained.weights.tolist() == pytest.approx([expected, 1 - expected])


def test_a_critic_that_draws_does_not_change_the_networks_draws():
    run = run_of(make_cell())
    plain, with_critic = Draws(run, KEYED[:2]), Draws(run, KEYED)
    for epoch in (0, 4):
        assert torch.equal(plain.rows(epoch), with_critic.rows(epoch))
        keys, more = plain.keys(epoch), with_critic.keys(epoch)
        assert keys.shape == (run.steps, 1, 3, 2)
        assert more.shape == (run.steps, 1, 6, 2)
        assert torch.equal(more[:, :, :3], keys)
