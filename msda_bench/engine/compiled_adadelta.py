"""Dense Adadelta in one pass over memory, compiled."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from msda_bench.engine import kernels


class CompiledAdadelta:
    """torch.optim.Adadelta to rounding, without its eleven passes over weights and state.

    Args:
        parameters: on the CPU, each for which `flat` finds a view; one without a gradient is left alone.
        lr: learning rate.
        rho: decay of the accumulators.
        eps: added under the roots.
    """

    def __init__(self, parameters: Sequence[Tensor], lr: float, rho: float, eps: float) -> None:
        self._parameters = parameters
        self._state = []
        for parameter in parameters:
            values = flat(parameter.detach(), parameter)
            arrays = values.numpy(), torch.zeros_like(values).numpy(), torch.zeros_like(values).numpy()
            number = arrays[0].dtype.type
            self._state.append((*arrays, (number(lr), number(rho), number(1 - rho), number(eps))))

    def zero_grad(self) -> None:
        """Forgets all gradients."""
        for parameter in self._parameters:
            parameter.grad = None

    def set_lr(self, lr: float) -> None:
        """The learning rate of the steps to come."""
        for place, (weight, squares, deltas, settings) in enumerate(self._state):
            self._state[place] = weight, squares, deltas, (type(settings[0])(lr), *settings[1:])

    def step(self) -> None:
        """One update from the gradients."""
        for parameter, (weight, squares, deltas, settings) in zip(self._parameters, self._state, strict=True):
            if parameter.grad is not None:
                gradient = flat(parameter.grad, parameter).numpy()
                kernels.adadelta(weight, gradient, squares, deltas, settings)


def has_flat_view(parameter: Tensor) -> bool:
    """Whether a parameter's memory is one dense run, in row-major or in channels-last order."""
    return parameter.is_contiguous() or parameter.is_contiguous(memory_format=_channels_last(parameter))


def flat(values: Tensor, like: Tensor) -> Tensor:
    """The values as a vector in the order of a parameter's memory; of the parameter itself, a view."""
    if not like.is_contiguous():
        values = values.movedim(1, -1)
    return values.reshape(-1)


def _channels_last(values: Tensor) -> torch.memory_format:
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    return formats.get(values.dim(), torch.contiguous_format)
