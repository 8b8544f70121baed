"""The compiled forms of a bag-of-words layer with its lazy Adadelta, of dense optimisers, and of dropout."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from msda_bench.api import Array
from msda_bench.engine import kernels
from msda_bench.engine.tensors import flat
from msda_bench.functional import SparseRows
from msda_bench.layers import BagLinear


class CompiledBag:
    """Computes the layer's product, and optimises its weight by Adadelta.

    The gradient of the weight is never formed: the backward pass leaves the gradient of the product here, and `step`
    sums each word's share and updates its row in one go. So between backward and step `weight.grad` is None.
    """

    def __init__(self, layer: BagLinear, params: Mapping[str, Any]) -> None:
        weight = layer.weight.detach()
        squares = torch.zeros_like(weight)
        deltas = torch.zeros_like(weight)
        last = torch.zeros(len(weight), dtype=torch.int64)
        self._state = weight.numpy(), squares.numpy(), deltas.numpy(), last.numpy()
        self._params = params
        self._steps = 0
        self._pending: list[tuple[SparseRows, Tensor]] = []
        self.set_lr(params["lr"])
        layer.product = self._product

    def _product(self, x: SparseRows, weight: Tensor) -> Tensor:
        product: Tensor = _Product.apply(weight, x, self._pending)  # type: ignore[no-untyped-call]
        return product

    def zero_grad(self) -> None:
        """Forgets the last gradient."""
        self._pending.clear()

    def set_lr(self, lr: float) -> None:
        """The learning rate of the steps to come."""
        self._settings = _adadelta_settings(self._state[0], lr, self._params)

    def step(self) -> None:
        """One update from the last backward pass; without one the gradient counts as zero."""
        self._steps += 1
        if not self._pending:
            return
        x, gradient = self._pending[0]
        if len(self._pending) > 1:
            x = SparseRows.concatenate([x for x, _ in self._pending])
            gradient = torch.cat([gradient for _, gradient in self._pending])
        order = x.columns.argsort(stable=True)
        kernels.bag_adadelta(
            x.columns.index_select(0, order).numpy(),
            x.row_of().index_select(0, order).numpy(),
            x.values.index_select(0, order).numpy(),
            gradient.numpy(),
            self._state,
            self._steps,
            self._settings,
        )
        self._pending.clear()


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        weight: Tensor,
        x: SparseRows,
        pending: list[tuple[SparseRows, Tensor]],
    ) -> Tensor:
        ctx.x, ctx.pending = x, pending
        out = weight.new_empty(len(x), weight.shape[1])
        kernels.bag_product(
            x.columns.numpy(),
            x.values.numpy(),
            x.offsets.numpy(),
            weight.detach().numpy(),
            out.numpy(),
        )
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, None, None]:
        ctx.pending.append((ctx.x, gradient.contiguous()))
        return None, None, None


def _numbers(like: Array, *settings: float) -> tuple[Any, ...]:
    """Settings as numbers of an array's type."""
    return tuple(map(like.dtype.type, settings))


def _adadelta_settings(like: Array, lr: float, params: Mapping[str, Any]) -> tuple[Any, ...]:
    rho = params["rho"]
    return _numbers(like, lr, rho, 1 - rho, params["eps"])


class _Compiled:
    """What the compiled optimisers of dense parameters share.

    `flat` must find a view of each parameter; one without a gradient is left alone.

    Args:
        parameters: that it changes.
        params: of the suite's optimiser, by name.
        decoupled: whether weights decay apart from the gradient, as in AdamW.
    """

    def __init__(
        self,
        parameters: Sequence[Tensor],
        params: Mapping[str, Any],
        *,
        decoupled: bool = False,
    ) -> None:
        self._parameters = parameters
        self._params = params
        self._decoupled = decoupled
        self._lr = params["lr"]
        self._weights = [flat(parameter.detach(), parameter).numpy() for parameter in parameters]

    def zero_grad(self) -> None:
        """Forgets all gradients."""
        for parameter in self._parameters:
            parameter.grad = None

    def set_lr(self, lr: float) -> None:
        """The learning rate of the steps to come."""
        self._lr = lr

    @torch.no_grad()
    def decay(self, offsets: Mapping[int, Tensor]) -> None:
        """Weight decay's share of the offsets in the coming step, beside that of the weights themselves."""
        decay = self._params["weight_decay"]
        for parameter in self._parameters:
            if parameter.grad is None or id(parameter) not in offsets:
                continue
            if self._decoupled:
                parameter.sub_(offsets[id(parameter)], alpha=self._lr * decay)
            else:
                parameter.grad.add_(offsets[id(parameter)], alpha=decay)

    def _gradients(self) -> Iterator[tuple[int, Array]]:
        """For each parameter with a gradient its place and the flat gradient."""
        for place, parameter in enumerate(self._parameters):
            if parameter.grad is not None:
                yield place, flat(parameter.grad, parameter).numpy()


class CompiledAdadelta(_Compiled):
    """torch.optim.Adadelta to rounding, without its eleven passes over weights and state."""

    def __init__(self, parameters: Sequence[Tensor], params: Mapping[str, Any]) -> None:
        super().__init__(parameters, params)
        self._squares = [np.zeros_like(weights) for weights in self._weights]
        self._deltas = [np.zeros_like(weights) for weights in self._weights]
        self.set_lr(params["lr"])

    def set_lr(self, lr: float) -> None:
        """The learning rate of the steps to come."""
        self._settings = [_adadelta_settings(weights, lr, self._params) for weights in self._weights]

    def step(self) -> None:
        """One update from the gradients."""
        for place, gradient in self._gradients():
            kernels.adadelta(
                self._weights[place],
                gradient,
                self._squares[place],
                self._deltas[place],
                self._settings[place],
            )


class CompiledSgd(_Compiled):
    """torch.optim.SGD with `foreach`, without what its passes over weights and state cost in Python.

    It equals torch's to the last bit where there is a fused multiply-add; so does Adam below.
    """

    def __init__(self, parameters: Sequence[Tensor], params: Mapping[str, Any]) -> None:
        super().__init__(parameters, params)
        self._moments = [np.zeros_like(weights) for weights in self._weights]

    def step(self) -> None:
        """One update from the gradients."""
        params = self._params
        for place, gradient in self._gradients():
            weights = self._weights[place]
            settings = _numbers(weights, -self._lr, params["momentum"], params["weight_decay"])
            kernels.sgd(weights, self._moments[place], gradient, settings, params["nesterov"])


class CompiledAdam(_Compiled):
    """torch.optim.Adam with `foreach`, or AdamW if `decoupled`, without what its passes cost in Python."""

    def __init__(
        self,
        parameters: Sequence[Tensor],
        params: Mapping[str, Any],
        *,
        decoupled: bool,
    ) -> None:
        super().__init__(parameters, params, decoupled=decoupled)
        self._means = [np.zeros_like(weights) for weights in self._weights]
        self._squares = [torch.zeros_like(flat(parameter.detach(), parameter)) for parameter in parameters]
        self._steps = [0 for _ in parameters]
        second = params["beta2"]
        decay = 0.0 if decoupled else params["weight_decay"]
        settings = (1 - params["beta1"], second, 1 - second, decay)
        self._settings = [_numbers(weights, *settings) for weights in self._weights]

    def step(self) -> None:
        """One update from the gradients."""
        places = []
        for place, gradient in self._gradients():
            places.append(place)
            squares = self._squares[place].numpy()
            kernels.adam_moments(
                self._weights[place],
                self._means[place],
                squares,
                gradient,
                self._settings[place],
            )
        # As torch.optim does: its square roots come from a library that rounds in its own way.
        roots = torch._foreach_sqrt([self._squares[place] for place in places])  # noqa: SLF001
        for place, root in zip(places, roots, strict=True):
            self._move(place, root)

    def _move(self, place: int, root: Tensor) -> None:
        """The step of one parameter."""
        self._steps[place] += 1
        steps = self._steps[place]
        params = self._params
        kept = 1.0
        if self._decoupled:
            kept = 1 - self._lr * params["weight_decay"]
        size = -(self._lr / (1 - params["beta1"] ** steps))
        correction = (1 - params["beta2"] ** steps) ** 0.5
        weights = self._weights[place]
        settings = _numbers(weights, kept, size, correction, params["eps"])
        kernels.adam_update(weights, self._means[place], root.numpy(), settings)


def compiled_dropout(x: Tensor, key: Tensor, rate: float) -> Tensor:
    """As `msda_bench.layers.step_key.dropout`, to the last bit, for a tensor on the CPU."""
    if not x.requires_grad:  # such as a network's input, which needs no backward pass
        return _dropped(x, key, rate)
    dropped: Tensor = _Dropout.apply(x, key, rate)  # type: ignore[no-untyped-call]
    return dropped


def _dropped(x: Tensor, key: Tensor, rate: float) -> Tensor:
    source = x.detach().contiguous()
    out = torch.empty_like(source)
    high, low = (np.uint32(half & 0xFFFFFFFF) for half in key.tolist())
    numbers = out.view(-1).numpy()
    scale = numbers.dtype.type(1 / (1 - rate))
    threshold = np.uint32(round(rate * (1 << 31)))
    kernels.dropout(source.view(-1).numpy(), high, low, threshold, scale, numbers)
    return out


class _Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, key: Tensor, rate: float) -> Tensor:
        ctx.key, ctx.rate = key, rate
        return _dropped(x, key, rate)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return compiled_dropout(gradient, ctx.key, ctx.rate), None, None
