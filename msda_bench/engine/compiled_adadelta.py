"""Dense Adadelta in one pass over memory, compiled."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from msda_bench.engine import kernels


class CompiledAdadelta:
    """torch.optim.Adadelta to rounding, without its eleven passes over weights and state.

    Args:
        parameters: contiguous, on the CPU; one without a gradient is left alone.
        lr: learning rate.
        rho: decay of the accumulators.
        eps: added under the roots.
    """

    def __init__(self, parameters: Sequence[nn.Parameter], lr: float, rho: float, eps: float) -> None:
        self._parameters = parameters
        self._state = []
        for parameter in parameters:
            flat = parameter.detach().view(-1)
            arrays = flat.numpy(), torch.zeros_like(flat).numpy(), torch.zeros_like(flat).numpy()
            number = arrays[0].dtype.type
            self._state.append((*arrays, (number(lr), number(rho), number(1 - rho), number(eps))))

    def zero_grad(self) -> None:
        """Forgets all gradients."""
        for parameter in self._parameters:
            parameter.grad = None

    def step(self) -> None:
        """One update from the gradients."""
        for parameter, (weight, squares, deltas, settings) in zip(self._parameters, self._state, strict=True):
            if parameter.grad is not None:
                gradient = parameter.grad.reshape(-1).numpy()
                kernels.adadelta(weight, gradient, squares, deltas, settings)
