"""One run on its own, as the loop sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from msda_bench.api import Batch, Phase, Scheme, Step
from msda_bench.engine.accelerate import accelerate
from msda_bench.engine.model import Keyed, build_model, keyed, timed
from msda_bench.engine.optim import Trainable
from msda_bench.engine.precision import autocast
from msda_bench.engine.runs import Run, Seen
from msda_bench.engine.tensors import Examples, take
from msda_bench.functional import SparseRows

CHUNK = 256
"""Examples in one forward pass; larger ones leave the cache, and their memory is mapped anew each time."""


class Single:
    """The program of one run: draws of shape (...), tensors of shape (...), nothing stacked.

    Args:
        run: the run.
        device: where it trains.
    """

    lead: tuple[int, ...] = ()

    def __init__(self, run: Run, device: torch.device) -> None:
        self._model = build_model(run.cell, run.components, len(run.groups), device)
        self._run = run
        self._precision = run.cell.training.precision
        named = keyed(self._model.modules)
        self._keyed, self.keyed = list(named.values()), Keyed.of(named)
        self._timed = list(timed(self._model.modules).values())
        if self._precision != "bf16":  # the compiled dropout takes no bfloat16
            accelerate(self._model.modules, device)
        self._model.modules.train()
        self.x, self.y = run.data.x, run.data.y
        self.row_offsets = torch.zeros((), dtype=torch.int64, device=device)

    @property
    def trainable(self) -> Mapping[str, Trainable]:
        """The parts of the model, for their optimisers."""
        sparse, training = isinstance(self.x, SparseRows), self._run.cell.training
        return {name: Trainable.of(part, training, sparse=sparse) for name, part in self._model.modules.items()}

    @property
    def averaged(self) -> Sequence[Tensor]:
        """All weights and floating-point buffers."""
        modules = self._model.modules
        return [*modules.parameters(), *(each for each in modules.buffers() if each.is_floating_point())]

    def step(self, scheme: Scheme, batch: Batch, keys: Tensor, state: Tensor, phase: Phase) -> Step:
        """One step's objective; `keys` (keyed, 2) are those of the keyed modules."""
        for key, layer in zip(keys, self._keyed, strict=True):
            layer.key = key
        for following in self._timed:
            following.progress = torch.as_tensor(batch.progress)
        with autocast(self._precision, keys.device):
            return scheme.step(self._model.parts, batch, state, phase)

    @torch.no_grad()
    def apply(self, examples: Sequence[Examples]) -> list[Seen]:
        """Features and outputs of all examples, in evaluation mode; a list of one for the one run."""
        (given,) = examples
        self._model.modules.eval()
        parts, features, outputs = self._model.parts, [], []
        with autocast(self._precision, self.y.device):
            for start in range(0, len(given), CHUNK):
                rows = torch.arange(start, min(start + CHUNK, len(given)), device=self.y.device)
                found = parts.features(take(given, rows))
                features.append(found.float())
                outputs.append(parts.predictor(found).float())
        return [Seen(torch.cat(features), torch.cat(outputs))]
