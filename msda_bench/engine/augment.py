"""Applies a dataset's augmentation to each batch of images."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from msda_bench.api import Augments, PluginError
from msda_bench.engine.runs import Run
from msda_bench.engine.tensors import Numbers
from msda_bench.functional import SparseRows


class Augment:
    """Calls `augment` of a dataset that `Augments` if the network gets its examples; else changes nothing.

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
        if self._augments is None or isinstance(x, SparseRows):
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
