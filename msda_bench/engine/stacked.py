"""The program of a stack of runs."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.func import stack_module_state

from msda_bench.api import Batch, Component, EachDomain, Parts, Phase, Step, StepKey, StepProgress
from msda_bench.component.parts import Modules
from msda_bench.engine.machine import accelerate
from msda_bench.engine.model import build_model, make_parts, modules_of, set_row_layout
from msda_bench.engine.optim import Trainable
from msda_bench.engine.runs import Predictions, Run
from msda_bench.engine.settings import autocast
from msda_bench.engine.single import Augment, Single, floating, predicted
from msda_bench.engine.stacking import numbers
from msda_bench.engine.tensors import Examples, HostBytes, batch_of, chunk, dense, gathered

_State: TypeAlias = Mapping[str, Mapping[str, Tensor]]
"""The tensors of each part of a model by name; stacked, they have a leading dimension of R."""


class Stacked:
    """The program of R runs of the same `signature` and shapes: `torch.vmap` over the code for one.

    It has the attributes of `Single`. All examples are dense, since shapes must not depend on values.
    """

    def __init__(self, runs: Sequence[Run], device: torch.device) -> None:
        first = runs[0]
        self._run = first
        models = [build_model(run.cell, run.components, len(run.groups), run.files, device) for run in runs]
        self.modules, self.feature_dim = models[0]
        self.modules.train()
        if first.cell.training.precision != "bf16":  # the fused dropout takes no bfloat16
            accelerate(self.modules, device, stacked=True)
        self._parameters: dict[str, dict[str, Tensor]] = {}
        self._buffers: dict[str, dict[str, Tensor]] = {}
        for name in self.modules:
            parameters, buffers = stack_module_state([modules[name] for modules, _ in models])
            self._parameters[name] = parameters
            self._buffers[name] = buffers
        self.keyed = list(modules_of(self.modules, StepKey))
        self._keyed = [f"{name}.key".split(".", 1) for name in self.keyed]
        self._timed = [f"{name}.progress".split(".", 1) for name in modules_of(self.modules, StepProgress)]
        self._by_domain = list(modules_of(self.modules, EachDomain).values())
        self._numbers = _stack_numbers(runs, device)
        self.lead: tuple[int, ...] = (len(runs),)
        self.state: dict[str, Tensor] = {}
        self.augment = Augment(first, stacked=True)
        self.x: Examples
        self.x, self.y, self.row_offsets = _joined_data(runs)

    @property
    def trainable(self) -> Mapping[str, Trainable]:
        """The stacked parameters; each optimiser works element by element, so runs do not meet in it."""
        return {name: Trainable(list(values.values()), []) for name, values in self._parameters.items()}

    @property
    def named(self) -> Mapping[str, Tensor]:
        """All stacked weights by name."""
        return _flat_names(self._parameters)

    @property
    def averaged(self) -> Sequence[Tensor]:
        """All weights and floating-point buffers."""
        tensors = [*self.named.values(), *_flat_names(self._buffers).values()]
        return [tensor for tensor in tensors if tensor.is_floating_point()]

    def call(self, act: Callable[..., Any], *inputs: Any) -> Any:
        """The result of `act(scheme, parts, *inputs)` for each run; inputs and results have a leading R."""
        # Randomness from outside the run's own streams would depend on the other runs in the stack, so it is refused.
        mapped = torch.vmap(partial(self._one, act), randomness="error")
        with autocast(self._run.cell.training.precision, self.y.device):
            return mapped(self._parameters, self._buffers, self._numbers, *inputs)

    def _one(
        self,
        act: Callable[..., Any],
        parameters: _State,
        buffers: _State,
        values: _State,
        *inputs: Any,
    ) -> Any:
        """The result of `act` for one run with these tensors."""
        run = self._run
        aggregator = run.components.aggregator
        if aggregator is not None:
            aggregator = _with(aggregator, values["aggregator"])
        tensors = {name: {**parameters[name], **buffers[name]} for name in self.modules}
        parts = make_parts(
            run.cell,
            run.components,
            len(run.groups),
            self.feature_dim,
            Modules(dict(self.modules.items()), tensors),
            values["cell"]["mu"],
            aggregator,
        )
        return act(_with(run.scheme, values["scheme"]), parts, *inputs)

    def step(self, batch: Batch, keys: Tensor, state: Tensor, phase: Phase) -> Step:
        """One step's objectives (R,); `keys` (R, keyed, 2) are those of the keyed modules."""
        for place, (part, buffer) in enumerate(self._keyed):
            self._buffers[part][buffer] = keys[:, place]
        for part, buffer in self._timed:
            self._buffers[part][buffer] = torch.as_tensor(batch.progress)
        set_row_layout(self._by_domain, batch)

        def take(scheme: Any, parts: Parts, *given: Any) -> Step:
            done: Step = scheme.step(parts, *given, phase)
            return done

        steps: Step = self.call(take, batch, state)
        return steps

    def weights(self, place: int) -> dict[str, Tensor]:
        """The weights of one run, its floating-point buffers, and its state, by name."""
        tensors = {f"carried.{name}": value for name, value in self.state.items()}
        for part in self.modules:
            tensors |= _flat_names({part: {**self._parameters[part], **self._buffers[part]}})
        return {name: value[place] for name, value in floating(tensors.items()).items()}

    @torch.no_grad()
    def apply(self, examples: Sequence[Examples]) -> list[Predictions]:
        """Features and outputs of each run's examples, in evaluation mode; shorter sets are padded for it."""
        sizes = [len(given) for given in examples]
        all_rows = torch.arange(max(sizes), device=self.y.device)
        predict = partial(predicted, width=self._run.prepared.task.outputs)
        parts = []
        self.modules.eval()
        for rows in torch.split(all_rows, chunk(examples[0])):
            batches = [dense(batch_of(given, rows.clamp(max=len(given) - 1))) for given in examples]
            x = self.augment(torch.stack(batches))
            parts.append(self.call(predict, x, self.state))
        self.modules.train()
        features, outputs = [torch.cat(some, 1) for some in zip(*parts, strict=True)]
        return [Predictions(features[run, :size], outputs[run, :size]) for run, size in enumerate(sizes)]


Program: TypeAlias = Single | Stacked


def _flat_names(tensors: _State) -> dict[str, Tensor]:
    """Tensors by `part.name`."""
    named: dict[str, Tensor] = {}
    for part, values in tensors.items():
        for name, value in values.items():
            named[f"{part}.{name}"] = value
    return named


def _stack_numbers(runs: Sequence[Run], device: torch.device) -> _State:
    """The numbers that may differ from run to run, each (R,) float32: mu, and those of aggregator and scheme."""
    of_runs = [numbers(run.cell, run.components) for run in runs]
    stacked: dict[str, dict[str, Tensor]] = {}
    for owner, names in of_runs[0].items():
        stacked[owner] = {}
        for name in names:
            values = [of_run[owner][name] for of_run in of_runs]
            stacked[owner][name] = torch.tensor(values, device=device)
    return stacked


def _with(component: Component, values: Mapping[str, Tensor]) -> Any:
    """The component with tensors in place of some of its parameters, which have been validated as numbers."""
    made = copy.copy(component)
    for name, value in values.items():
        object.__setattr__(made, name, value)
    return made


def _joined_data(runs: Sequence[Run]) -> tuple[Examples, Tensor, Tensor]:
    """Examples and labels of all splits, each split once, and where each run's begin."""
    splits = {id(run.prepared): run for run in runs}
    parts: list[Examples] = []
    labels: list[Tensor] = []
    starts: dict[int, int] = {}
    start = 0
    for identity, run in splits.items():
        x = run.data.x
        parts.append(x if isinstance(x, HostBytes) else dense(x))
        labels.append(run.data.y)
        starts[identity] = start
        start += len(run.data.y)
    y = torch.cat(labels)
    offsets = torch.tensor([starts[id(run.prepared)] for run in runs], device=y.device)
    return gathered(parts, start), y, offsets
