"""Dropout that draws from the run's own stream."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from msda_bench.functional import SparseRows, drop_entries
from msda_bench.layers.step_key import StepKey


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
        return SparseRows(kept.columns, kept.values * (1 / (1 - self.rate)), kept.offsets, x.width)
