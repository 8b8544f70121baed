"""Adadelta that updates only the rows with a gradient, and equals the dense one."""

from __future__ import annotations

import torch
from torch import nn


class LazyAdadelta:
    """Exact Adadelta (Zeiler 2012, algorithm 1) of a matrix whose gradient is sparse in its rows.

    Without a gradient a row does not change and both of its accumulators decay by rho. So a row can wait for its next
    gradient and then be multiplied by rho ** skipped at once: the same numbers up to rounding.

    Args:
        weight: (rows, columns) float32, whose `grad` is best a sparse COO tensor over rows.
        lr: learning rate.
        rho: decay of the accumulators.
        eps: added under the roots.
    """

    def __init__(self, weight: nn.Parameter, lr: float, rho: float, eps: float) -> None:
        self._weight, self._lr, self._rho, self._eps = weight, lr, rho, eps
        self._square_average = torch.zeros_like(weight, requires_grad=False)
        self._delta_average = torch.zeros_like(weight, requires_grad=False)
        self._last_step = torch.zeros(len(weight), dtype=torch.int64)
        self._steps = 0

    def zero_grad(self) -> None:
        """Forgets the gradient."""
        self._weight.grad = None

    def set_lr(self, lr: float) -> None:
        """The learning rate of the steps to come."""
        self._lr = lr

    @torch.no_grad()
    def step(self) -> None:
        """One update from `weight.grad`; a missing gradient counts as zero."""
        self._steps += 1
        if self._weight.grad is None:
            return
        gradient = self._weight.grad
        gradient = gradient.coalesce() if gradient.is_sparse else gradient.to_sparse(1)
        rows, values = gradient.indices()[0], gradient.values()
        skipped = self._steps - 1 - self._last_step[rows]
        decay = (self._rho ** skipped.to(torch.float64)).to(values.dtype).unsqueeze(1)
        square = self._square_average[rows].mul_(decay * self._rho).addcmul_(values, values, value=1 - self._rho)
        delta_average = self._delta_average[rows].mul_(decay)
        delta = (delta_average + self._eps).sqrt_().div_((square + self._eps).sqrt_()).mul_(values)
        delta_average.mul_(self._rho).addcmul_(delta, delta, value=1 - self._rho)
        self._square_average[rows] = square
        self._delta_average[rows] = delta_average
        self._weight.index_add_(0, rows, delta, alpha=-self._lr)
        self._last_step[rows] = self._steps
