"""The tensors of one run, or of a stack of runs, as the loop sees them, and the augmentation of their batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from msda_bench.api import Augments, Batch, Carried, Parts, Phase, PluginError, Scheme, Step
from msda_bench.engine.model import Keyed
from msda_bench.engine.optim import Trainable
from msda_bench.engine.runs import Run, Seen
from msda_bench.engine.tensors import Examples, Numbers
from msda_bench.functional import SparseRows

_IMAGES = 4
"""Dimensions of a batch of images of one run."""


class Augment:
    """Calls `augment` of a dataset that `Augments` if the network gets its examples; else changes no number.

    Args:
        run: the run with the dataset; of a stack any one.
        stacked: batches and keys have a leading dimension of runs.
    """

    def __init__(self, run: Run, *, stacked: bool) -> None:
        dataset, frozen = run.components.dataset, run.components.frozen
        self._augments = dataset.augment if isinstance(dataset, Augments) and not frozen else None
        self._shape, self._ref, self._stacked = dataset.input.shape, run.cell.dataset, stacked

    @torch.no_grad()
    def __call__(self, x: Numbers, key: Tensor | None = None) -> Numbers:
        """The batch as the network gets it; without a key, as in tests, nothing is drawn.

        Raises:
            PluginError: the dataset returned another dtype than float32, or another shape than its `input` declares.
        """
        if isinstance(x, SparseRows):
            return x
        changed = self._changed(x, key)
        # As weights of convolutions lie there.
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

    def _checked(self, augment: Callable[[Tensor, Tensor | None], Tensor], x: Tensor, key: Tensor | None) -> Tensor:
        images = augment(x, key)
        wanted = (len(x), *self._shape)
        if images.shape != wanted or images.dtype != torch.float32:
            raise PluginError(
                f"dataset {self._ref.name!r} of {self._ref.distribution} augmented images of shape {tuple(x.shape)} to "
                f"{images.dtype} of {tuple(images.shape)}; the contract asks for torch.float32 of {wanted}"
            )
        return images


class Judgeable(Protocol):
    """A trained program, or whatever else answers for one run or for a stack of runs."""

    def weights(self, place: int) -> dict[str, Tensor]:
        """The weights of one run, its floating-point buffers, and its carried values, by name."""
        ...

    def apply(self, examples: Sequence[Examples]) -> list[Seen]:
        """Features and outputs of each run's examples, as its scheme predicts them, in evaluation mode."""
        ...


class Program(Judgeable, Protocol):
    """The tensors of one run, or of a stack of R runs, whose tensors then all have a leading dimension of R.

    Attributes:
        lead: () for one run, (R,) for a stack.
        keyed: how many modules of a run get a key in every phase of a step, such as dropout.
        modules: features, predictor and critic; they hold the mode, training or evaluation.
        feature_dim: width of the features.
        x: training examples of all runs.
        y: their labels.
        row_offsets: (*lead,) int64: where each run's examples begin in `x`.
        carried: the values that each run carries besides its weights, by name.
        augment: batches of images to what the network gets; in training with a key of each run.
    """

    lead: tuple[int, ...]
    keyed: Keyed
    modules: nn.ModuleDict
    feature_dim: int
    x: Examples
    y: Tensor
    row_offsets: Tensor
    carried: dict[str, Tensor]
    augment: Augment

    @property
    def trainable(self) -> Mapping[str, Trainable]:
        """What can be trained, by part."""
        ...

    @property
    def named(self) -> Mapping[str, Tensor]:
        """All weights by name, as schemes see them in `Parts.weights`."""
        ...

    @property
    def averaged(self) -> Sequence[Tensor]:
        """All weights, and the buffers that hold numbers, such as batch-norm's statistics."""
        ...

    def call(self, act: Callable[..., Any], *inputs: Any) -> Any:
        """The result of `act(scheme, parts, *inputs)` for each run's scheme, parts and inputs, tensors in mappings."""
        ...

    def step(self, batch: Batch, keys: Tensor, state: Tensor, phase: Phase) -> Step:
        """One phase's objectives; `keys` (*lead, keyed, 2) are those of the keyed modules."""
        ...


def floating(named: Iterable[tuple[str, Tensor]]) -> dict[str, Tensor]:
    """Weights and floating-point buffers, such as batch-norm's statistics, except the progress of training."""
    return {name: value for name, value in named if value.is_floating_point() and not name.endswith("progress")}


def predicted(scheme: Scheme, parts: Parts, x: Numbers, carried: Carried, width: int) -> tuple[Tensor, Tensor]:
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
