"""The program of a single run, and what it shares with that of a stack."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from msda_bench.api import (
    Augments,
    Batch,
    Carried,
    EachDomain,
    Parts,
    Phase,
    PluginError,
    Scheme,
    Step,
    StepKey,
    StepProgress,
)
from msda_bench.component.parts import Modules
from msda_bench.engine.machine import accelerate
from msda_bench.engine.model import build_model, make_parts, modules_of, set_row_layout
from msda_bench.engine.optim import Trainable
from msda_bench.engine.runs import Predictions, Run
from msda_bench.engine.settings import autocast
from msda_bench.engine.tensors import Examples, Numbers, batch_of, chunk
from msda_bench.functional import SparseRows

_IMAGES = 4
"""Dimensions of a batch of images of one run."""


class Augment:
    """Calls the `augment` of a dataset, unless the network gets frozen features; otherwise no number changes.

    If `stacked`, batches and keys have a leading dimension of runs. `changes` is whether it calls anything.
    """

    def __init__(self, run: Run, *, stacked: bool) -> None:
        dataset = run.components.dataset
        self._augments: Callable[[Tensor, Tensor | None], Tensor] | None = None
        if isinstance(dataset, Augments) and not run.components.frozen:
            self._augments = dataset.augment
        self.changes = self._augments is not None
        self._shape = dataset.input.shape
        self._ref = run.cell.dataset
        self._stacked = stacked

    @torch.no_grad()
    def __call__(self, x: Numbers, key: Tensor | None = None) -> Numbers:
        """The batch as the network gets it; without a key, as in tests, nothing is drawn.

        Raises:
            PluginError: the dataset returned another dtype than float32, or another shape than its `input` declares.
        """
        if isinstance(x, SparseRows):
            return x
        changed = self._changed(x, key)
        # The memory format of a convolution's weights on a GPU.
        turns = x.is_cuda and x.dim() == _IMAGES
        return changed.contiguous(memory_format=torch.channels_last) if turns else changed

    def _changed(self, x: Tensor, key: Tensor | None) -> Tensor:
        if self._augments is None:
            return x
        checked = partial(self._checked, self._augments)
        if not self._stacked:
            return checked(x, key)
        if key is None:
            return torch.vmap(lambda batch: checked(batch, None), randomness="error")(x)
        return torch.vmap(checked, randomness="error")(x, key)

    def _checked(
        self,
        augment: Callable[[Tensor, Tensor | None], Tensor],
        x: Tensor,
        key: Tensor | None,
    ) -> Tensor:
        images = augment(x, key)
        wanted = (len(x), *self._shape)
        if images.shape != wanted or images.dtype != torch.float32:
            raise PluginError(
                f"dataset {self._ref.name!r} of {self._ref.distribution} augmented images of shape {tuple(x.shape)} to "
                f"{images.dtype} of {tuple(images.shape)}; the contract asks for torch.float32 of {wanted}"
            )
        return images


class Single:
    """The tensors of one run as the loop sees them; those of `Stacked` have a leading dimension of R runs.

    Attributes:
        lead: () for one run, (R,) for a stack.
        keyed: the names of a run's modules that get a key in every phase of a step, such as dropout.
        modules: features, predictor and critic; they hold the mode, training or evaluation.
        feature_dim: width of the features.
        x: training examples of all runs.
        y: their labels.
        row_offsets: (*lead,) int64: where each run's examples begin in `x`.
        state: the values that each run carries besides its weights, by name.
        augment: batches of images to what the network gets; in training with a key of each run.
    """

    lead: tuple[int, ...] = ()

    def __init__(self, run: Run, device: torch.device) -> None:
        cell = run.cell
        components = run.components
        k = len(run.groups)
        self._run = run
        self._scheme = run.scheme
        self._has_stages = len(self._scheme.stages) > 1
        self._precision = cell.training.precision
        self.modules, self.feature_dim = build_model(cell, components, k, run.files, device)
        functions = Modules(dict(self.modules.items()))
        self._parts = make_parts(
            cell,
            components,
            k,
            self.feature_dim,
            functions,
            cell.mu,
            components.aggregator,
        )
        named = modules_of(self.modules, StepKey)
        self.keyed = list(named)
        # Their buffers, since torch takes its time to set an attribute of a module.
        self._keyed = [module._buffers for module in named.values()]  # noqa: SLF001
        self._timed = [module._buffers for module in modules_of(self.modules, StepProgress).values()]  # noqa: SLF001
        self._by_domain = list(modules_of(self.modules, EachDomain).values())
        if self._precision != "bf16":  # the compiled dropout takes no bfloat16
            accelerate(self.modules, device)
        self.modules.train()
        self.x = run.data.x
        self.y = run.data.y
        self.augment = Augment(run, stacked=False)
        self.state: dict[str, Tensor] = {}
        self.row_offsets = torch.zeros((), dtype=torch.int64, device=device)

    @property
    def trainable(self) -> Mapping[str, Trainable]:
        """The parts of the model, for their optimisers."""
        training = self._run.cell.training
        sparse = isinstance(self.x, SparseRows)
        return {name: Trainable.of(part, training, sparse=sparse) for name, part in self.modules.items()}

    @property
    def named(self) -> Mapping[str, Tensor]:
        """All weights by name."""
        return dict(self.modules.named_parameters())

    @property
    def averaged(self) -> Sequence[Tensor]:
        """All weights and floating-point buffers."""
        buffers = [buffer for buffer in self.modules.buffers() if buffer.is_floating_point()]
        return [*self.modules.parameters(), *buffers]

    def call(self, act: Callable[..., Any], *inputs: Any) -> Any:
        """The result of `act(scheme, parts, *inputs)`.

        Each stage of a scheme with several gets a copy: nothing that one stage keeps in it reaches the next.
        """
        scheme = copy.copy(self._scheme) if self._has_stages else self._scheme
        with autocast(self._precision, self.y.device):
            return act(scheme, self._parts, *inputs)

    def step(self, batch: Batch, keys: Tensor, state: Tensor, phase: Phase) -> Step:
        """One step's objective; `keys` (keyed, 2) are those of the keyed modules."""
        for key, buffers in zip(keys.unbind(), self._keyed, strict=True):
            buffers["key"] = key
        for buffers in self._timed:
            buffers["progress"] = torch.as_tensor(batch.progress)
        set_row_layout(self._by_domain, batch)
        done: Step = self.call(lambda scheme, parts: scheme.step(parts, batch, state, phase))
        return done

    def weights(self, place: int) -> dict[str, Tensor]:  # noqa: ARG002 - there is one run
        """The weights, the floating-point buffers, and the state, by name."""
        named = [*self.modules.named_parameters(), *self.modules.named_buffers()]
        named += [(f"carried.{name}", value) for name, value in self.state.items()]
        return floating(named)

    @torch.no_grad()
    def apply(self, examples: Sequence[Examples]) -> list[Predictions]:
        """Features and outputs of all examples, in evaluation mode; a list of one for the one run."""
        (given,) = examples
        all_rows = torch.arange(len(given), device=self.y.device)
        predict = partial(predicted, width=self._run.prepared.task.outputs)
        parts = []
        self.modules.eval()
        for rows in torch.split(all_rows, chunk(given)):
            x = self.augment(batch_of(given, rows))
            parts.append(self.call(predict, x, self.state))
        self.modules.train()
        features, outputs = map(torch.cat, zip(*parts, strict=True))
        return [Predictions(features, outputs)]


def floating(named: Iterable[tuple[str, Tensor]]) -> dict[str, Tensor]:
    """Weights and floating-point buffers, such as batch-norm's statistics, except the progress of training."""
    return {name: value for name, value in named if value.is_floating_point() and not name.endswith("progress")}


def predicted(
    scheme: Scheme,
    parts: Parts,
    x: Numbers,
    carried: Carried,
    width: int,
) -> tuple[Tensor, Tensor]:
    """Features and outputs as a scheme predicts them.

    Raises:
        PluginError: the outputs have another width, or features or outputs are not one row an example.
    """
    features, outputs = scheme.predict(parts, x, carried)
    if outputs.shape != (len(x), width) or features.shape[:-1] != (len(x),):
        raise PluginError(
            f"scheme {scheme.name!r} predicted features and outputs of shapes {tuple(features.shape)} and "
            f"{tuple(outputs.shape)} for {len(x)} examples; the contract asks for ({len(x)}, d) and ({len(x)}, {width})"
        )
    return features.float(), outputs.float()
