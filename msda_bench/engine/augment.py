"""What a dataset makes of each batch of images before a network gets it."""

from __future__ import annotations

import torch
from torch import Tensor

from msda_bench.api import Dataset, PluginError
from msda_bench.engine.runs import Run
from msda_bench.engine.tensors import Numbers
from msda_bench.functional import SparseRows


class Augment:
    """Calls `Dataset.augment` where a dataset has its own and the network gets its examples; else batches just pass.

    Args:
        run: whose dataset it is; that of any run of a stack.
        stacked: batches and keys have a leading dimension of runs.
    """

    def __init__(self, run: Run, *, stacked: bool) -> None:
        self._dataset, self._cell, self._stacked = run.components.dataset, run.cell, stacked
        own = type(self._dataset).augment is not Dataset.augment
        self.used = own and not run.components.frozen

    @torch.no_grad()
    def __call__(self, x: Numbers, key: Tensor | None = None) -> Numbers:
        """A batch as the network gets it; without a key as in tests, where nothing is drawn.

        Raises:
            PluginError: the dataset gave other numbers than float32, or another shape than its `input` says.
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
