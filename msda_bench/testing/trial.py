"""Runs of a scheme in the toy world: single steps, alone or in a stack, and short trainings by the engine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

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
    Sizes,
    Stage,
    Step,
    Task,
)
from msda_bench.component.parts import Modules, task_loss
from msda_bench.plugins import Entry, Registry
from msda_bench.store.record import Record
from msda_bench.suite.cell import Cell, Ref
from msda_bench.suite.protocol import Adam, Optimizer, Protocol
from msda_bench.testing.toy import WIDTH, Blobs, MeanOutput, OneLayer, labels, numbers, seeded

SOURCES: Group = ("north", "east", "south")
TARGET = "west"
_SIZE = 6


class ToyRun(nn.Module):
    """A run before its first step, with modules and a batch drawn from the seed as the engine draws them.

    Attributes:
        groups: the labelled groups.
        task: the task.
        sizes: numbers of examples, features and outputs.
        state: the aggregator's initial state.
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
        used = discrepancy if scheme.uses_discrepancy else None  # a scheme with its own critic builds none
        with seeded(seed):
            network = OneLayer().build(task, InputSpec((WIDTH,)))
            critic = scheme.build(network, k, used)
        self.parts = nn.ModuleDict({"features": network.features, "predictor": network.predictor, "critic": critic})
        self.sizes = Sizes((_SIZE,) * k, _SIZE, network.feature_dim, task.outputs)
        self._drawn = k + scheme.draws_target(used)
        self._seed, self.state = seed, aggregator.start(torch.full((k,), float(_SIZE)))

    def given(self, phase: Phase) -> dict[str, Tensor]:
        """The inputs of a step by name: the batch that the phase's stage may see, carried tensors and the state."""
        k, stage = len(self.groups), self.stage_of(phase)
        x = numbers(self._drawn * _SIZE, WIDTH, stream=self._seed)
        y = labels(self.task, k, _SIZE, stream=self._seed + 50)
        if "sources" not in stage.sees:
            x, y = x[k * _SIZE :], y[:0]
        elif "target" not in stage.sees:
            x = x[: k * _SIZE]
        key, rows = torch.tensor([self._seed, 7], dtype=torch.int32), torch.arange(len(x)) % _SIZE
        batch = {"x": x, "y": y, "key": key, "progress": torch.tensor(0.5), "rows": rows}
        carried = {f"carried {name}": value for name, value in self.carried(stage).items()}
        return {f"batch's {name}": value for name, value in batch.items()} | carried | {"state": self.state}

    def carried(self, stage: Stage) -> dict[str, Tensor]:
        """The tensors that the run carries at the start of the stage."""
        found = self("carry", {}, self.sizes, stage)
        return {name: value.detach().clone() for name, value in found.items()}

    def stage_of(self, phase: Phase) -> Stage:
        """The first stage that contains the phase."""
        return next((stage for stage in self.scheme.stages if phase in stage.phases), self.scheme.stages[0])

    def forward(self, hook: str, given: dict[str, Tensor], *inputs: Any) -> Any:
        """The result of a scheme's hook for the run's parts, the batch and state in `given`, if any, and the inputs."""
        modules, loss = Modules(dict(self.parts.items())), task_loss(self.task)
        functions: dict[str, Any] = modules.functions()
        parts = Parts(**functions, loss=loss, aggregate=self._aggregate, mu=self.mu, modules=modules)
        call = getattr(self.scheme, hook)
        if not given:
            return call(parts, *inputs)
        x, y, key, progress, rows, *carried, state = given.values()
        names = [name.removeprefix("carried ") for name in given if name.startswith("carried ")]
        batch = Batch(x, y, key, progress, rows, dict(zip(names, carried, strict=True)))
        return Step(*call(parts, batch, state, *inputs)) if hook == "step" else call(parts, batch, *inputs)

    def step(self, phase: Phase) -> Step:
        """One step of this run alone."""
        return cast("Step", self("step", self.given(phase), phase))

    def feature_gradient(self, objective: Tensor) -> Tensor:
        """The objective's gradient with respect to the first layer's weights."""
        weight = next(self.parts["features"].parameters())
        return torch.autograd.grad(objective, weight, materialize_grads=True)[0]

    def _aggregate(self, risks: Tensor, gaps: Tensor, state: Tensor) -> Aggregate:
        who = f"scheme {self.scheme.name!r}"
        assert self.scheme.uses_discrepancy, f"{who} takes no aggregator, so it must not call one"
        return self.aggregator(risks, gaps, self.mu, state)


def trained(
    scheme: Scheme, discrepancy: Discrepancy, aggregator: Aggregator, mu: float, blobs: Blobs, runs: int = 1
) -> list[Record]:
    """The records of runs of two epochs of three steps, trained by the engine in one stack on the CPU."""
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
        training=Protocol(epochs=2, batch=10, steps=3, optimizer=Optimizer(adam=Adam(lr=0.01)), epoch="scheme"),
        validators=(refs["validator"],),
        seed=0,
    )
    cells = [replace(cell, seed=seed) for seed in range(runs)]
    return list(Trainer(registry, LocalFiles(), "cpu", runs).train(cells))


def _ref(part: Component) -> Ref:
    return Ref(part.kind, part.name, part.version, "msda-bench-testing", part.identity())
