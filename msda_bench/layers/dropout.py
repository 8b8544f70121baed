"""Dropout that draws from its run's own stream."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from msda_bench.functional import SparseRows, drop_entries
from msda_bench.layers.step_key import StepKey


def dropout(x: Tensor, key: Tensor, rate: float) -> Tensor:
    """Dropout of dense input by the mask of a (2,) int32 key."""
    return drop_entries(x, key, rate) * (1 / (1 - rate))


class Dropout(StepKey):
    """Zeroes elements at `rate` in training and scales the others by 1 / (1 - rate).

    The mask is a pure function of the step's `key` and the element's position, so it is the same whether a run trains
    alone or in a stack, and for sparse rows the same as for the dense matrix that they stand for.

    Attributes:
        drop: how dense input is dropped; an engine may put a faster one in its place.
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate
        self.drop: Callable[[Tensor, Tensor, float], Tensor] = dropout

    def forward(self, x: Tensor | SparseRows) -> Tensor | SparseRows:
        """The same shape as `x`; of sparse rows, only the survivors are stored."""
        if not self.training or self.rate == 0:
            return x
        if isinstance(x, SparseRows):
            return self._sparse(x)
        return self.drop(x, self.key, self.rate)

    def _sparse(self, x: SparseRows) -> SparseRows:
        kept = drop_entries(x, self.key, self.rate)
        return SparseRows(kept.columns, kept.values * (1 / (1 - self.rate)), kept.offsets, x.width)
