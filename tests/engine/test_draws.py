"""The draws of a run's training."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import pytest
import torch

from msda_bench.engine.draws import Draws
from msda_bench.engine.model import Components, Keyed
from msda_bench.engine.prepare import Preparer
from msda_bench.engine.runs import Run
from msda_bench.plugins import Registry
from msda_bench.suite.cell import Cell
from tests.engine.conftest import NoFiles

KEYS = "63199eb0fe5ecaaf667da43520016171fad4bbab5362dbf4d87503ab063d87bc"


def run_of(registry: Registry, cell: Cell) -> Run:
    components = Components.of(cell, registry)
    return Run(cell, components, Preparer(NoFiles(), torch.device("cpu")).prepare(components.dataset, cell))


def test_a_critic_that_draws_does_not_change_the_networks_draws(
    registry: Registry, make_cell: Callable[..., Cell]
) -> None:
    run = run_of(registry, make_cell())
    plain, with_critic = Draws(run, Keyed(2, 0)), Draws(run, Keyed(2, 3))
    for epoch in (0, 4):
        assert torch.equal(plain.rows(epoch), with_critic.rows(epoch))
        keys, more = plain.keys(epoch), with_critic.keys(epoch)
        assert keys.shape == (run.steps, 1, 3, 2)
        assert more.shape == (run.steps, 1, 6, 2)
        assert torch.equal(more[:, :, :3], keys)


@pytest.mark.parametrize("method", ["DARN", "MCD", "WDGRL"])
def test_no_key_is_used_twice(registry: Registry, make_cell: Callable[..., Cell], method: str) -> None:
    """Keys differ between phases of a step, too."""
    draws = Draws(run_of(registry, make_cell(method)), Keyed(1, 2))
    keys = torch.cat([draws.keys(epoch).view(-1, 2) for epoch in range(3)])
    assert len(keys.unique(dim=0)) == len(keys)


def test_keys_of_a_single_phase_match_stored_records(registry: Registry, make_cell: Callable[..., Cell]) -> None:
    """Methods with one phase keep the keys of engine version 1, compared by digest."""
    for method in ("DARN", "MCD"):
        keys = Draws(run_of(registry, make_cell(method)), Keyed(2, 1)).keys(1)[:, 0].contiguous()
        assert hashlib.sha256(keys.numpy().tobytes()).hexdigest() == KEYS


def test_keyed_modules_are_counted_by_part() -> None:
    assert Keyed.of(["features.0", "features.2", "predictor.1", "critic", "critic.3"]) == Keyed(3, 2)
