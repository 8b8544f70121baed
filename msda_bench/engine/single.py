"""The program of a single run."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from msda_bench.api import Batch, EachDomain, Phase, Step
from msda_bench.component.parts import Modules
from msda_bench.engine.machine import accelerate
from msda_bench.engine.model import Keyed, build_model, keyed, make_parts, tell_domains, timed
from msda_bench.engine.optim import Trainable
from msda_bench.engine.program import Augment, floating, predicted
from msda_bench.engine.runs import Run, Seen
from msda_bench.engine.settings import autocast
from msda_bench.engine.tensors import Examples, batch_of, chunk
from msda_bench.functional import SparseRows


class Single:
    """The program of one run: draws of shape (...), tensors of shape (...), nothing stacked.

    Args:
        run: the run.
        device: where it trains.
    """

    lead: tuple[int, ...] = ()

    def __init__(self, run: Run, device: torch.device) -> None:
        self._run, cell, components, k = run, run.cell, run.components, len(run.groups)
        self.modules, self.feature_dim = build_model(cell, components, k, run.files, device)
        functions = Modules(dict(self.modules.items()))
        self._parts = make_parts(cell, components, k, self.feature_dim, functions, cell.mu, components.aggregator)
        self._scheme = components.scheme
        self._staged = len(self._scheme.stages) > 1
        self._precision = cell.training.precision
        named = keyed(self.modules)
        self._keyed, self.keyed = list(named.values()), Keyed.of(named)
        self._timed = list(timed(self.modules).values())
        self._by_domain = [layer for layer in self.modules.modules() if isinstance(layer, EachDomain)]
        if self._precision != "bf16":  # the compiled dropout takes no bfloat16
            accelerate(self.modules, device)
        self.modules.train()
        self.x, self.y, self.augment = run.data.x, run.data.y, Augment(run, stacked=False)
        self.carried: dict[str, Tensor] = {}
        self.row_offsets = torch.zeros((), dtype=torch.int64, device=device)

    @property
    def trainable(self) -> Mapping[str, Trainable]:
        """The parts of the model, for their optimisers."""
        sparse, training = isinstance(self.x, SparseRows), self._run.cell.training
        return {name: Trainable.of(part, training, sparse=sparse) for name, part in self.modules.items()}

    @property
    def named(self) -> Mapping[str, Tensor]:
        """All weights by name."""
        return dict(self.modules.named_parameters())

    @property
    def averaged(self) -> Sequence[Tensor]:
        """All weights and floating-point buffers."""
        modules = self.modules
        return [*modules.parameters(), *(buffer for buffer in modules.buffers() if buffer.is_floating_point())]

    def call(self, act: Callable[..., Any], *inputs: Any) -> Any:
        """The result of `act(scheme, parts, *inputs)`.

        Each stage of a scheme with several gets a copy: nothing that one stage keeps in it reaches the next.
        """
        scheme = copy.copy(self._scheme) if self._staged else self._scheme
        with autocast(self._precision, self.y.device):
            return act(scheme, self._parts, *inputs)

    def step(self, batch: Batch, keys: Tensor, state: Tensor, phase: Phase) -> Step:
        """One step's objective; `keys` (keyed, 2) are those of the keyed modules."""
        for key, layer in zip(keys, self._keyed, strict=True):
            layer.key = key
        for following in self._timed:
            following.progress = torch.as_tensor(batch.progress)
        tell_domains(self._by_domain, batch)
        done: Step = self.call(lambda scheme, parts: scheme.step(parts, batch, state, phase))
        return done

    def weights(self, place: int) -> dict[str, Tensor]:  # noqa: ARG002 - there is one run
        """The weights, the floating-point buffers, and the carried values, by name."""
        carried = {f"carried.{name}": value for name, value in self.carried.items()}
        return floating([*self.modules.named_parameters(), *self.modules.named_buffers(), *carried.items()])

    @torch.no_grad()
    def apply(self, examples: Sequence[Examples]) -> list[Seen]:
        """Features and outputs of all examples, in evaluation mode; a list of one for the one run."""
        (given,) = examples
        self.modules.eval()
        width = self._run.prepared.task.outputs
        seen = [
            self.call(predicted, self.augment(batch_of(given, rows)), self.carried, width)
            for rows in torch.split(torch.arange(len(given), device=self.y.device), chunk(given))
        ]
        self.modules.train()
        features, outputs = zip(*seen, strict=True)
        return [Seen(torch.cat(features), torch.cat(outputs))]
