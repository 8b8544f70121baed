"""Gradients that grow in the course of training (Ganin et al. 2016)."""

from __future__ import annotations

import torch
from torch import Tensor


def ramp_share(ramp: float | None, progress: Tensor | float) -> Tensor | float:
    """(1 - exp(-r t)) / (1 + exp(-r t)) at the share t of training done; 1 throughout without a ramp."""
    return 1.0 if ramp is None else torch.tanh(torch.as_tensor(ramp / 2 * progress))


def scaled_gradient(rows: Tensor, factor: Tensor | float) -> Tensor:
    """The same values, with their gradient multiplied by a factor; a negative one reverses it."""
    fixed = rows.detach()
    return fixed + factor * (rows - fixed)
