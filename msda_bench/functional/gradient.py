"""Gradient reversal without a custom autograd function, so that it can be stacked."""

from __future__ import annotations

from torch import Tensor


def reverse_gradient(x: Tensor) -> Tensor:
    """Returns `x` and negates its gradient (Ganin et al. 2016, section 4.2).

    The value equals `x` bit for bit, because `2 x - x` is exact in floating point unless it overflows.
    """
    return 2 * x.detach() - x
