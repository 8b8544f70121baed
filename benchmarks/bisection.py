"""Sharpmax by bisection, as the paper computes it, for a whole batch at once and without a host sync."""

from __future__ import annotations

import torch
from torch import Tensor

ITERATIONS = 24
"""Each halves an interval of width 1, down to the spacing of float32."""


def bisection(z: Tensor) -> Tensor:
    """Sharpmax of scores (..., k); differentiable in O(k)."""
    low = _threshold(z.detach())
    above = (z - low).clamp(min=0)
    # One Newton step on the threshold: it moves by a rounding error, and carries the implicit function's gradient.
    slope = 2 * above.detach().sum(-1, keepdim=True)
    threshold = low + (above.square().sum(-1, keepdim=True) - 1) / slope
    inside = (z - threshold).clamp(min=0)
    return inside / inside.sum(-1, keepdim=True)


def _threshold(z: Tensor) -> Tensor:
    high = z.amax(-1, keepdim=True)
    low = high - 1
    for _ in range(ITERATIONS):
        middle = (low + high) / 2
        below = (z - middle).clamp(min=0).square().sum(-1, keepdim=True) > 1
        low, high = torch.where(below, middle, low), torch.where(below, high, middle)
    return low
