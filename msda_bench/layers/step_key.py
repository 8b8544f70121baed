"""Layers that the engine updates in every step, with a random key or the progress of training, such as dropout."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from msda_bench.functional import SparseRows, drop_entries


class StepKey(nn.Module):
    """Base of modules that draw random numbers in training.

    Before every phase of a step the engine sets a new `key` in each of these modules in the network and the critic.
    Draws from it with `msda_bench.functional.uniform` do not depend on whether a run trains alone or in a stack. Calls
    in one phase see one key.

    Attributes:
        key: (2,) int32; zero before the first phase.
    """

    key: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("key", torch.zeros(2, dtype=torch.int32), persistent=False)


class StepProgress(nn.Module):
    """Base of modules that change during training, such as a discrepancy with a growing weight.

    In every step the engine sets `progress` in each of these modules in the network and the critic, as it sets
    `Batch.progress` for a scheme.

    Attributes:
        progress: () float32, the share of the stage that is done, from 0 in its first step towards 1; zero before.
    """

    progress: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("progress", torch.zeros(()), persistent=False)


def dropout(x: Tensor, key: Tensor, rate: float) -> Tensor:
    """Dropout for dense input, with a mask drawn from a (2,) int32 key."""
    return drop_entries(x, key, rate) * (1 / (1 - rate))


class Dropout(StepKey):
    """Zeroes elements at `rate` in training and scales the others by 1 / (1 - rate).

    The mask is a pure function of the step's `key` and the element's position. It does not depend on whether a run
    trains alone or in a stack, or on whether the input is dense or sparse.

    Attributes:
        rate: probability of dropping an element, in [0, 1).
        drop: drops elements of dense input; the engine may replace it by a faster function.
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate
        self.drop: Callable[[Tensor, Tensor, float], Tensor] = dropout

    def forward(self, x: Tensor | SparseRows) -> Tensor | SparseRows:
        """Input of the type and shape of `x`; sparse rows store only the remaining elements."""
        if not self.training or self.rate == 0:
            return x
        if isinstance(x, SparseRows):
            return self._sparse(x)
        return self.drop(x, self.key, self.rate)

    def _sparse(self, x: SparseRows) -> SparseRows:
        kept = drop_entries(x, self.key, self.rate)
        return SparseRows(
            kept.columns,
            kept.values * (1 / (1 - self.rate)),
            kept.offsets,
            x.width,
        )
