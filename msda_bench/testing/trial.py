"""Runs of a scheme in the toy world: single steps, alone or in a stack, and a short training by the engine itself."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn

from msda_bench.api import (
    Aggregate,
    Aggregator,
    Batch,
    Component,
    Discrepancy,
    Group,
    InputSpec,
    Parts,
    Phase,
    Scheme,
    Step,
    Task,
)
from msda_bench.component.parts import task_loss
from msda_bench.plugins import Entry, Registry
from msda_bench.store.record import Record
from msda_bench.suite.cell import Cell, Ref, Training
from msda_bench.testing.toy import WIDTH, Blobs, MeanOutput, OneLayer, labels, numbers, seeded

SOURCES: Group = ("north", "east", "south")
TARGET = "west"
_SIZE = 6


class ToyRun(nn.Module):
    """A run that has not yet taken a step: its modules, built, and a batch, drawn, from the seed as the engine does.

    Attributes:
        groups: the labelled groups.
        task: the task.
        inputs: what a step is given, the batch's tensors and the aggregator's initial state.
    """

    def __init__(
        self,
        scheme: Scheme,
        discrepancy: Discrepancy,
        aggregator: Aggregator,
        mu: float,
        sources: Group,
        task: Task,
        seed: int,
    ) -> None:
        super().__init__()
        self.scheme, self.aggregator, self.mu, self.task = scheme, aggregator, mu, task
        self.groups = scheme.groups(sources, TARGET)
        k = len(self.groups)
        used = discrepancy if scheme.uses_discrepancy else None  # one with a critic of its own is given none to build
        with seeded(seed):
            network = OneLayer().build(task, InputSpec((WIDTH,)))
            critic = scheme.build(network, k, used)
        self.parts = nn.ModuleDict({"features": network.features, "predictor": network.predictor, "critic": critic})
        self.inputs: tuple[Tensor, ...] = (
            numbers((k + scheme.draws_target(used)) * _SIZE, WIDTH, stream=seed),
            labels(task, k, _SIZE, stream=seed + 50),
            torch.tensor([seed, 7], dtype=torch.int32),
            torch.tensor(0.5),
            aggregator.initial_state(k),
        )

    def forward(self, phase: Phase, *inputs: Tensor) -> Step:
        """A step with these inputs."""
        *batch, state = inputs
        parts = Parts(**dict(self.parts.items()), loss=task_loss(self.task), aggregate=self._aggregate, mu=self.mu)
        return Step(*self.scheme.step(parts, Batch(*batch), state, phase))

    def step(self, phase: Phase) -> Step:
        """The step, alone."""
        return cast("Step", self(phase, *self.inputs))

    def feature_gradient(self, objective: Tensor) -> Tensor:
        """The objective's gradient with respect to the first layer's weights."""
        weight = next(self.parts["features"].parameters())
        return torch.autograd.grad(objective, weight, materialize_grads=True)[0]

    def _aggregate(self, risks: Tensor, gaps: Tensor, state: Tensor) -> Aggregate:
        who = f"scheme {self.scheme.name!r}"
        assert self.scheme.uses_discrepancy, f"{who} takes no aggregator, so it must not call one"
        return self.aggregator(risks, gaps, self.mu, state)


def trained(scheme: Scheme, discrepancy: Discrepancy, aggregator: Aggregator, mu: float, blobs: Blobs) -> Record:
    """The record of a run of two epochs of three steps, by the training core itself, on the CPU."""
    from msda_bench.data import LocalFiles
    from msda_bench.engine.train import Trainer

    parts: list[Component] = [blobs, OneLayer(), scheme, MeanOutput()]
    parts += [discrepancy, aggregator] if scheme.uses_discrepancy else []
    registry = Registry([Entry(part.kind, type(part), "msda-bench-testing", "0") for part in parts])
    refs = {part.kind: _ref(part) for part in parts}
    cell = Cell(
        dataset=refs["dataset"],
        fingerprint=blobs.fingerprint(),
        target="aim",
        sources=("one", "two"),
        backbone=refs["backbone"],
        scheme=refs["scheme"],
        discrepancy=refs.get("discrepancy"),
        aggregator=refs.get("aggregator"),
        mu=mu,
        training=Training(2, 10, "adam", {"lr": 0.01, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8}, steps=3),
        validators=(refs["validator"],),
        seed=0,
    )
    (record,) = Trainer(registry, LocalFiles(), "cpu").train([cell])
    return record


def _ref(part: Component) -> Ref:
    return Ref(part.kind, part.name, part.version, "msda-bench-testing", part.identity())
