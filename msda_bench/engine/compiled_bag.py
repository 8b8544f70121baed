"""A bag-of-words layer's product and its lazy Adadelta, compiled."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from msda_bench.engine import kernels
from msda_bench.functional import SparseRows
from msda_bench.layers import BagLinear


class CompiledBag:
    """Computes the layer's product, and is the optimiser of its weight.

    The gradient of the weight is never formed: the backward pass leaves the gradient of the product here, and `step`
    sums each word's share and updates its row in one go. So between backward and step `weight.grad` is None.

    Args:
        layer: the layer.
        lr: learning rate of Adadelta.
        rho: decay of its accumulators.
        eps: added under the roots.
    """

    def __init__(self, layer: BagLinear, lr: float, rho: float, eps: float) -> None:
        weight = layer.weight.detach()
        number = weight.numpy().dtype.type
        self._settings = number(lr), number(rho), number(1 - rho), number(eps)
        squares, deltas = torch.zeros_like(weight), torch.zeros_like(weight)
        last = torch.zeros(len(weight), dtype=torch.int64)
        self._state = weight.numpy(), squares.numpy(), deltas.numpy(), last.numpy()
        self._steps = 0
        self._pending: list[tuple[SparseRows, Tensor]] = []
        layer.product = self._product

    def _product(self, x: SparseRows, weight: Tensor) -> Tensor:
        product: Tensor = _Product.apply(weight, x, self._pending)  # type: ignore[no-untyped-call]
        return product

    def zero_grad(self) -> None:
        """Forgets the last gradient."""
        self._pending.clear()

    def set_lr(self, lr: float) -> None:
        """The learning rate of the steps to come."""
        self._settings = type(self._settings[0])(lr), *self._settings[1:]

    def step(self) -> None:
        """One update from the last backward pass; without one the gradient counts as zero."""
        self._steps += 1
        if not self._pending:
            return
        x = SparseRows.concatenate([x for x, _ in self._pending])
        gradient = torch.cat([gradient for _, gradient in self._pending])
        order = x.columns.argsort(stable=True)
        columns, rows, values = (part[order].numpy() for part in (x.columns, x.row_of(), x.values))
        kernels.bag_adadelta(columns, rows, values, gradient.numpy(), self._state, self._steps, self._settings)
        self._pending.clear()


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, x: SparseRows, pending: list[tuple[SparseRows, Tensor]]) -> Tensor:
        ctx.x, ctx.pending = x, pending
        out = weight.new_empty(len(x), weight.shape[1])
        columns, values, offsets = (part.numpy() for part in (x.columns, x.values, x.offsets))
        kernels.bag_product(columns, values, offsets, weight.detach().numpy(), out.numpy())
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, None, None]:
        ctx.pending.append((ctx.x, gradient.contiguous()))
        return None, None, None
