"""Gradient reversal without a custom autograd function, so that it can be stacked."""

from __future__ import annotations

from torch import Tensor


def reverse_gradient(x: Tensor) -> Tensor:
    """The identity, whose gradient is minus the identity (Ganin et al. 2016, section 4.2).

    `2 x - x` is exact in floating point unless it overflows, so the value is `x` to the last bit.
    """
    return 2 * x.detach() - x
