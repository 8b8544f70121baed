"""One small run of a scheme: a network, a batch and a state, alone or in a stack."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn

from msda_bench.api import Aggregate, Aggregator, Batch, Discrepancy, Group, Network, Parts, Phase, Scheme, Step, Task
from msda_bench.component.scheme import task_loss
from msda_bench.testing import toy
from msda_bench.testing.guard import seeded
from msda_bench.testing.stack import stacked

SOURCES: Group = ("north", "east", "south")
TARGET = "west"
_WIDTH = 5
_FEATURES = 4
_SIZE = 6

Weights = Mapping[str, Tensor]


@dataclass(frozen=True, eq=False)
class ToyRun:
    """A run that has not yet taken a step.

    Attributes:
        scheme: how it trains.
        task: the task.
        groups: the labelled groups.
        modules: features, predictor and critic.
        batch: the first step's batch.
        state: the aggregator's initial state.
        aggregate: the aggregator with its mu, in the form that `Parts` has it.
        mu: weight of the gaps.
    """

    scheme: Scheme
    task: Task
    groups: tuple[Group, ...]
    modules: nn.ModuleDict
    batch: Batch
    state: Tensor
    aggregate: Callable[[Tensor, Tensor, Tensor], Aggregate]
    mu: float

    @classmethod
    def start(
        cls,
        scheme: Scheme,
        discrepancy: Discrepancy,
        aggregator: Aggregator,
        mu: float,
        sources: Group,
        task: Task,
        seed: int,
    ) -> ToyRun:
        """Builds the modules and draws a batch from the seed, as the engine does."""
        groups = scheme.groups(sources, TARGET)
        k = len(groups)
        used = discrepancy if scheme.uses_discrepancy else None  # one with a critic of its own is given none to build
        with seeded(seed):
            features = nn.Sequential(nn.Linear(_WIDTH, _FEATURES), nn.Tanh())
            network = Network(features, nn.Linear(_FEATURES, task.outputs), _FEATURES)
            critic = scheme.build(network, k, used)
        modules = nn.ModuleDict({"features": features, "predictor": network.predictor, "critic": critic})
        drawn = scheme.draws_target(used)
        batch = Batch(
            x=toy.numbers((k + drawn) * _SIZE, _WIDTH, stream=seed),
            y=toy.labels(task, k, _SIZE, stream=seed + 50),
            key=torch.tensor([seed, 7], dtype=torch.int32),
            progress=torch.tensor(0.5),
        )

        def aggregate(risks: Tensor, gaps: Tensor, state: Tensor) -> Aggregate:
            assert scheme.uses_discrepancy, f"scheme {scheme.name!r} takes no aggregator, so it must not call one"
            return aggregator(risks, gaps, mu, state)

        return cls(scheme, task, groups, modules, batch, aggregator.initial_state(k), aggregate, mu)

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What a step is given: the batch's tensors and the state."""
        return (*(cast("Tensor", part) for part in self.batch), self.state)

    def step(self, phase: Phase) -> Step:
        """The step, alone."""
        return self.step_with(phase, dict(self.modules.named_parameters()), {}, *self.inputs)

    def feature_gradient(self, objective: Tensor) -> Tensor:
        """The objective's gradient with respect to the first layer's weights."""
        weight = next(self.modules["features"].parameters())
        return torch.autograd.grad(objective, weight, materialize_grads=True)[0]

    def step_with(self, phase: Phase, parameters: Weights, buffers: Weights, *inputs: Tensor) -> Step:
        """The step as a function of the modules' weights and of `inputs`, so that it can be stacked."""
        *given, state = inputs
        parts = Parts(
            features=self._function("features", parameters, buffers),
            predictor=self._function("predictor", parameters, buffers),
            critic=self._function("critic", parameters, buffers),
            loss=task_loss(self.task),
            aggregate=self.aggregate,
            mu=self.mu,
        )
        return Step(*self.scheme.step(parts, Batch(*given), state, phase))

    def _function(self, name: str, parameters: Weights, buffers: Weights) -> Callable[..., Tensor]:
        own = {
            key.removeprefix(f"{name}."): value
            for key, value in {**parameters, **buffers}.items()
            if key.startswith(f"{name}.")
        }
        return lambda *inputs: torch.func.functional_call(self.modules[name], own, inputs)


def stacked_step(who: str, runs: Sequence[ToyRun], phase: Phase) -> tuple[Tensor, Tensor, Tensor]:
    """One step of all runs at once.

    Returns:
        Of each run, its objective, its weights, and the objective's gradient with respect to the first layer's weights.
    """
    parameters, buffers = torch.func.stack_module_state([run.modules for run in runs])
    inputs = [torch.stack(tensors) for tensors in zip(*(run.inputs for run in runs), strict=True)]

    def call(parameters: Weights, buffers: Weights, *inputs: Tensor) -> tuple[Tensor, Tensor]:
        step = runs[0].step_with(phase, parameters, buffers, *inputs)
        return step.objective, step.weights

    def differentiated(*arguments: Any) -> tuple[Any, tuple[Tensor, Tensor]]:
        return torch.func.grad_and_value(call, has_aux=True)(*arguments)

    gradients, (objectives, weights) = stacked(who, differentiated, parameters, buffers, *inputs)
    return objectives, weights, gradients["features.0.weight"]
