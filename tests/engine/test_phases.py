"""Each phase of a training step, including critic steps and repeats, has its own draws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor, nn

from msda_bench.api import (
    Backbone,
    Batch,
    Discrepancy,
    Dropout,
    InputSpec,
    Network,
    Parts,
    Phase,
    Scheme,
    Stage,
    Step,
    StepKey,
    Task,
    component,
)
from msda_bench.engine.train import Trainer
from msda_bench.functional import uniform
from msda_bench.plugins import Entry, Registry
from msda_bench.suite.cell import Cell
from tests.engine.conftest import WIDTH, NoFiles

STEPS = 3


@component
class OnlyDropout(Backbone):
    """Features that are the masked input."""

    name = "only_dropout"

    def build(self, task: Task, input: InputSpec, files: Any = None) -> Network:
        return Network(nn.Sequential(Dropout(0.5)), nn.Linear(WIDTH, task.outputs), WIDTH)


class _Points(StepKey):
    seen: ClassVar[list[Tensor]] = []

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        self.seen.append(uniform(self.key, (4,)))
        return source.new_zeros(len(source))


@component
class Points(Discrepancy):
    """Draws points, like a gradient penalty."""

    name = "points"

    def build(self, feature_dim: int, k: int) -> nn.Module:
        return _Points()


@component
class Repeats(Scheme):
    """A third-party scheme: one phase twice, then another."""

    name = "repeats"
    masks: ClassVar[list[Tensor]] = []
    keys: ClassVar[list[Tensor]] = []

    @property
    def stages(self) -> tuple[Stage, ...]:
        return (Stage("all", phases=(Phase("critic"), Phase("critic"), Phase("network"))),)

    def step(self, parts: Parts, batch: Batch, state: Tensor, phase: Phase) -> Step:
        assert isinstance(batch.x, Tensor)
        ones = torch.ones_like(batch.x)
        self.masks.append(parts.features(ones))
        self.keys.append(batch.key)
        seen = parts.forward(batch)
        gaps = parts.critic(seen.source, seen.target)
        return Step(seen.risks.sum(), seen.risks, gaps)


def test_masks_points_and_keys_differ_between_the_phases_of_a_step(
    registry: Registry, make_cell: Callable[..., Cell], monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: dict[str, list[Tensor]] = {"masks": [], "points": [], "keys": []}
    monkeypatch.setattr(Repeats, "masks", drawn["masks"])
    monkeypatch.setattr(Repeats, "keys", drawn["keys"])
    monkeypatch.setattr(_Points, "seen", drawn["points"])
    strangers: tuple[type[Any], ...] = (OnlyDropout, Points, Repeats)
    with_them = Registry([*registry.entries, *(Entry(cls.kind, cls, "stranger", "1") for cls in strangers)])
    cell = make_cell(dataset={"sparse": False}, epochs=1)
    for cls in strangers:
        ref = replace(getattr(cell, cls.kind), name=cls.name, distribution="stranger", params={})
        cell = replace(cell, **{cls.kind: ref})
    (record,) = Trainer(with_them, NoFiles(), "cpu").train(
        [replace(cell, training=cell.training.model_copy(update={"steps": STEPS}))]
    )
    assert record.status == "ok"
    for what, found in drawn.items():
        assert len(found) == 3 * STEPS, what
        assert len({tuple(one.flatten().tolist()) for one in found}) == len(found), what
