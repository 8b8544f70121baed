"""Adadelta and dropout on a GPU in one pass each: kernels of Triton, which torch for CUDA on Linux brings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from msda_bench.engine.tensors import flat

_BLOCK = 1024


class FusedAdadelta:
    """torch.optim.Adadelta to rounding, in 28 bytes of memory traffic a weight instead of eleven passes.

    A CUDA graph may record `step`: the learning rate is a tensor. The parameters are float32, and `flat` must find a
    view of each; one without a gradient is left alone.
    """

    def __init__(self, parameters: Sequence[Tensor], params: Mapping[str, Any]) -> None:
        rho = params["rho"]
        self._parameters = parameters
        self._settings = (rho, 1 - rho, params["eps"])
        self._lr = torch.full((), params["lr"], dtype=torch.float32, device=parameters[0].device)
        self._state = []
        for parameter in parameters:
            weight = flat(parameter.detach(), parameter)
            self._state.append((weight, torch.zeros_like(weight), torch.zeros_like(weight)))

    def zero_grad(self) -> None:
        """Forgets all gradients."""
        for parameter in self._parameters:
            parameter.grad = None

    def set_lr(self, lr: float) -> None:
        """The learning rate of the steps to come."""
        self._lr.fill_(lr)

    def step(self) -> None:
        """One update from the gradients."""
        for parameter, state in zip(self._parameters, self._state, strict=True):
            if parameter.grad is None:
                continue
            gradient = flat(parameter.grad, parameter)
            count = parameter.numel()
            grid = (triton.cdiv(count, _BLOCK),)
            with torch.cuda.device_of(gradient):  # type: ignore[no-untyped-call]  # Triton's is the current GPU
                _adadelta[grid](
                    gradient,
                    *state,
                    self._lr,
                    *self._settings,
                    count,
                    block=_BLOCK,
                )


@triton.jit  # type: ignore[untyped-decorator]
def _adadelta(gradients, weights, squares, deltas, lr, rho, rest, eps, count, block: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.program_id(0) * block + tl.arange(0, block)
    there = at < count
    g, before = tl.load(gradients + at, there), tl.load(deltas + at, there)
    square = tl.load(squares + at, there) * rho + rest * g * g
    delta = tl.div_rn(tl.sqrt_rn(before + eps), tl.sqrt_rn(square + eps)) * g
    tl.store(weights + at, tl.load(weights + at, there) - tl.load(lr) * delta, there)
    tl.store(squares + at, square, there)
    tl.store(deltas + at, before * rho + rest * delta * delta, there)


def fused_dropout(x: Tensor, key: Tensor, rate: float) -> Tensor:
    """As `msda_bench.layers.step_key.dropout`, to the last bit, for a float32 tensor on a GPU; `torch.vmap` maps it."""
    dropped: Tensor = _Dropout.apply(x, key, rate)  # type: ignore[no-untyped-call]
    return dropped


class _Dropout(torch.autograd.Function):
    """Dropout of x (*lead, ...) with keys (*lead, 2)."""

    @staticmethod
    def forward(x: Tensor, key: Tensor, rate: float) -> Tensor:
        x = x.detach().contiguous()
        key = key.contiguous()
        out = torch.empty_like(x)
        runs = max(1, key.numel() // 2)
        count = x.numel() // runs
        with torch.cuda.device_of(x):  # type: ignore[no-untyped-call]  # Triton's is the current GPU
            grid = (triton.cdiv(count, _BLOCK), runs)
            _dropped[grid](
                x,
                key,
                out,
                round(rate * (1 << 31)),
                1 / (1 - rate),
                count,
                block=_BLOCK,
            )
        return out

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, float], output: Tensor) -> None:  # noqa: ARG004 - torch's
        _, key, ctx.rate = inputs
        ctx.save_for_backward(key)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (key,) = ctx.saved_tensors
        return fused_dropout(gradient, key, ctx.rate), None, None

    @staticmethod
    def vmap(
        info: Any,
        in_dims: Any,
        x: Tensor,
        key: Tensor,
        rate: float,
    ) -> tuple[Tensor, int]:
        x, key = (
            value.expand(info.batch_size, *value.shape) if place is None else value.movedim(place, 0)
            for value, place in zip((x, key), in_dims[:2], strict=True)
        )
        return fused_dropout(x, key, rate), 0


@triton.jit  # type: ignore[untyped-decorator]
def _dropped(x, keys, out, threshold, scale, count, block: tl.constexpr):  # type: ignore[no-untyped-def]
    """`msda_bench.functional.random.keep_mask` of each run, applied to its `count` numbers."""
    run, place = tl.program_id(1), tl.program_id(0) * block + tl.arange(0, block)
    index, there = place.to(tl.uint32), place < count
    at = run.to(tl.int64) * count + place
    h = (index * 0x9E3779B1) ^ tl.load(keys + 2 * run).to(tl.uint32, bitcast=True)
    h = ((h ^ (h >> 16)) * 0x85EBCA6B).to(tl.uint32)
    h = ((h ^ (h >> 13)) * 0xC2B2AE35).to(tl.uint32)
    h = ((h ^ (h >> 16)) + index) ^ tl.load(keys + 2 * run + 1).to(tl.uint32, bitcast=True)
    h = ((h ^ (h >> 16)) * 0x85EBCA6B).to(tl.uint32)
    h = ((h ^ (h >> 13)) * 0xC2B2AE35).to(tl.uint32)
    kept = ((h ^ (h >> 16)) & 0x7FFFFFFF).to(tl.int64) >= threshold
    tl.store(out + at, tl.load(x + at, there) * kept.to(tl.float32) * scale, there)
