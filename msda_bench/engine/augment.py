"""Applies a dataset's augmentation to each batch of images."""

from __future__ import annotations

import torch
from torch import Tensor

from msda_bench.api import Dataset, PluginError
from msda_bench.engine.runs import Run
from msda_bench.engine.tensors import Numbers
from msda_bench.functional import SparseRows


class Augment:
    """Calls `Dataset.augment` if the dataset defines it and the network gets its examples; else changes nothing.

    Args:
        run: the run with the dataset; of a stack any one.
        stacked: batches and keys have a leading dimension of runs.
    """

    def __init__(self, run: Run, *, stacked: bool) -> None:
        self._dataset, self._cell, self._stacked = run.components.dataset, run.cell, stacked
        own = type(self._dataset).augment is not Dataset.augment
        self.used = own and not run.components.frozen

    @torch.no_grad()
    def __call__(self, x: Numbers, key: Tensor | None = None) -> Numbers:
        """The batch as the network gets it; without a key, as in tests, nothing is drawn.

        Raises:
            PluginError: the dataset returned another dtype than float32, or another shape than its `input` declares.
        """
        if not self.used or isinstance(x, SparseRows):
            return x
        if not self._stacked:
            return self._one(x, key)
        if key is None:
            return torch.vmap(lambda own: self._one(own, None), randomness="error")(x)
        return torch.vmap(self._one, randomness="error")(x, key)

    def _one(self, x: Tensor, key: Tensor | None) -> Tensor:
        found = self._dataset.augment(x, key)
        wanted = (len(x), *self._dataset.input.shape)
        if found.shape != wanted or found.dtype != torch.float32:
            ref = self._cell.dataset
            raise PluginError(
                f"dataset {ref.name!r} of {ref.distribution} augmented images of shape {tuple(x.shape)} to "
                f"{found.dtype} of {tuple(found.shape)}; the contract asks for torch.float32 of {wanted}"
            )
        return found
