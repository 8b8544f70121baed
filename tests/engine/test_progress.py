"""A scheme sees how much of its run's training is done, and may take all examples in each step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from msda_bench.api import Batch, Parts, Phase, Scheme, Step, component
from msda_bench.engine.train import Trainer
from msda_bench.plugins import Entry, Registry
from msda_bench.suite.cell import Cell, Ref
from tests.engine.conftest import NoFiles


@component
class Watch(Scheme):
    """Records the progress as gaps, and the mean input of each group as risks."""

    name = "watch"

    def step(self, parts: Parts, batch: Batch, state: Tensor, phase: Phase) -> Step:
        seen = parts.forward(batch)
        k, size = batch.y.shape
        assert isinstance(batch.x, Tensor)
        inputs = batch.x[: k * size].reshape(k, -1).mean(1)
        gaps = torch.ones(k) * batch.progress
        return Step(seen.risks.mean(), inputs, gaps)


@pytest.fixture
def train(registry: Registry, make_cell: Callable[..., Cell]) -> Callable[..., list[tuple[Tensor, Tensor]]]:
    known = Registry([*registry.entries, Entry("scheme", Watch, "tests", "0")])

    def run(stack: int, batch: int | str = 10) -> list[tuple[Tensor, Tensor]]:
        cell = replace(make_cell("SRC", dataset={"sparse": False}), scheme=Ref("scheme", "watch", 1, "tests", {}))
        training = cell.training.model_copy(update={"epochs": 2, "steps": 4, "batch": batch})
        cells = [replace(cell, training=training, seed=seed) for seed in range(stack)]
        records = list(Trainer(known, NoFiles(), "cpu", stack).train(cells))
        assert {record.provenance["stack"] for record in records} == {stack}
        curves = [record.curves for record in records]
        return [(torch.tensor(curve.gaps), torch.tensor(curve.risks)) for curve in curves if curve is not None]

    return run


@pytest.mark.parametrize("stack", [1, 2])
def test_progress_goes_from_0_towards_1_over_the_whole_run(
    train: Callable[..., list[tuple[Tensor, Tensor]]], stack: int
) -> None:
    found = train(stack)
    assert len(found) == stack
    for gaps, _ in found:  # means over the steps of each epoch: 0, 1, 2, 3 and 4, 5, 6, 7 of 8
        torch.testing.assert_close(gaps, torch.tensor([[1.5, 1.5], [5.5, 5.5]]) / 8)


@pytest.mark.parametrize("stack", [1, 2])
def test_a_batch_of_all_examples_is_identical_in_every_step(
    train: Callable[..., list[tuple[Tensor, Tensor]]], stack: int
) -> None:
    for (_, whole), (_, drawn) in zip(train(stack, "all"), train(stack), strict=True):
        torch.testing.assert_close(whole[0], whole[1])
        assert not torch.allclose(drawn[0], drawn[1])
