"""R runs as one tensor program."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state

from msda_bench.api import Batch, Component, Phase, Scheme, Step
from msda_bench.engine.model import Keyed, build_model, keyed, make_parts, timed
from msda_bench.engine.optim import Trainable
from msda_bench.engine.precision import autocast
from msda_bench.engine.runs import Run, Seen
from msda_bench.engine.stackable import numbers
from msda_bench.engine.tensors import Examples, concatenate, dense, take

CHUNK = 256
"""Examples of each run in one forward pass of an evaluation."""

_State: TypeAlias = Mapping[str, Mapping[str, Tensor]]
"""Of each part of a model its tensors by name; stacked, they have a leading dimension of R."""


class Stacked:
    """The program of R runs: `torch.vmap` over what is written for one.

    All examples are dense, since shapes must not depend on values.

    Args:
        runs: of the same `signature` and the same shapes.
        device: where they train.
    """

    def __init__(self, runs: Sequence[Run], device: torch.device) -> None:
        first = runs[0]
        models = [build_model(run.cell, run.components, len(run.groups), device) for run in runs]
        self._run, self._feature_dim = first, models[0].feature_dim
        self._base = models[0].modules.train()
        stacks = {name: stack_module_state([model.modules[name] for model in models]) for name in self._base}
        self._parameters: _State = {name: parameters for name, (parameters, _) in stacks.items()}
        self._buffers = {name: dict(buffers) for name, (_, buffers) in stacks.items()}
        names = list(keyed(self._base))
        self._keyed, self.keyed = [f"{name}.key".split(".", 1) for name in names], Keyed.of(names)
        self._timed = [f"{name}.progress".split(".", 1) for name in timed(self._base)]
        self._numbers = _stack_numbers(runs, device)
        self.lead: tuple[int, ...] = (len(runs),)
        self.x: Examples
        self.x, self.y, self.row_offsets = _joined_data(runs)

    @property
    def trainable(self) -> Mapping[str, Trainable]:
        """The stacked parameters; each optimiser works element by element, so runs do not meet in it."""
        return {name: Trainable(list(values.values()), []) for name, values in self._parameters.items()}

    @property
    def averaged(self) -> Sequence[Tensor]:
        """All weights and floating-point buffers."""
        state = [
            tensor for part in (self._parameters, self._buffers) for own in part.values() for tensor in own.values()
        ]
        return [tensor for tensor in state if tensor.is_floating_point()]

    def step(self, scheme: Scheme, batch: Batch, keys: Tensor, state: Tensor, phase: Phase) -> Step:  # noqa: ARG002
        """One step's objectives (R,); `keys` (R, keyed, 2) are those of the keyed modules."""
        for place, (part, buffer) in enumerate(self._keyed):
            self._buffers[part][buffer] = keys[:, place]
        for part, buffer in self._timed:
            self._buffers[part][buffer] = torch.as_tensor(batch.progress)
        # Randomness that is not the run's own would make it depend on its company, so it is refused.
        step = torch.vmap(partial(self._step, phase), randomness="error")
        with autocast(self._run.cell.training.precision, keys.device):
            found: Step = step(self._parameters, self._buffers, self._numbers, batch, state)
        return found

    def _step(
        self, phase: Phase, parameters: _State, buffers: _State, values: _State, batch: Batch, state: Tensor
    ) -> Step:
        components, k = self._run.components, len(self._run.groups)
        aggregator = components.aggregator and _with(components.aggregator, values["aggregator"])
        parts = make_parts(
            self._run.cell,
            components,
            k,
            self._feature_dim,
            self._functions(parameters, buffers),
            values["cell"]["mu"],
            aggregator,
        )
        scheme: Scheme = _with(components.scheme, values["scheme"])
        return scheme.step(parts, batch, state, phase)

    def _functions(self, parameters: _State, buffers: _State) -> dict[str, Callable[..., Tensor]]:
        return {
            name: partial(_call, module, {**parameters[name], **buffers[name]}) for name, module in self._base.items()
        }

    @torch.no_grad()
    def apply(self, examples: Sequence[Examples]) -> list[Seen]:
        """Features and outputs of each run's examples, in evaluation mode; shorter sets are padded meanwhile."""
        self._base.eval()
        sizes = [len(given) for given in examples]
        features, outputs = [], []
        forward = torch.vmap(self._forward, randomness="error")
        with autocast(self._run.cell.training.precision, self.y.device):
            for start in range(0, max(sizes), CHUNK):
                rows = torch.arange(start, min(start + CHUNK, max(sizes)), device=self.y.device)
                x = torch.stack([dense(take(given, rows.clamp(max=len(given) - 1))) for given in examples])
                found, told = forward(self._parameters, self._buffers, x)
                features.append(found.float())
                outputs.append(told.float())
        wide, tall = torch.cat(features, 1), torch.cat(outputs, 1)
        return [Seen(wide[place, :size], tall[place, :size]) for place, size in enumerate(sizes)]

    def _forward(self, parameters: _State, buffers: _State, x: Tensor) -> tuple[Tensor, Tensor]:
        functions = self._functions(parameters, buffers)
        features = functions["features"](x)
        return features, functions["predictor"](features)


def _call(module: nn.Module, state: dict[str, Tensor], *inputs: Any) -> Tensor:
    found: Tensor = functional_call(module, state, inputs)
    return found


def _stack_numbers(runs: Sequence[Run], device: torch.device) -> _State:
    """What may differ from run to run, each (R,) float32: mu, and what the aggregator and the scheme declare."""
    told = [numbers(run.cell, run.components) for run in runs]
    return {
        owner: {name: torch.tensor([each[owner][name] for each in told], device=device) for name in told[0][owner]}
        for owner in told[0]
    }


def _with(component: Component, values: Mapping[str, Tensor]) -> Any:
    """The component with tensors in the place of some of its parameters; they have been validated as numbers."""
    made = copy.copy(component)
    for name, value in values.items():
        object.__setattr__(made, name, value)
    return made


def _joined_data(runs: Sequence[Run]) -> tuple[Tensor, Tensor, Tensor]:
    """Examples and labels of all splits, each split once, and where each run's begin."""
    splits = {id(run.prepared): run for run in runs}
    starts, start = {}, 0
    for identity, run in splits.items():
        starts[identity] = start
        start += len(run.data.y)
    x = concatenate([dense(run.data.x) for run in splits.values()])
    y = torch.cat([run.data.y for run in splits.values()])
    assert isinstance(x, Tensor)  # noqa: S101 - all were made dense
    offsets = torch.tensor([starts[id(run.prepared)] for run in runs], device=y.device)
    return x, y, offsets
