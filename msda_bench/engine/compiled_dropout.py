"""Compiled dropout; its mask is hashed while it is applied, never stored, and hashed again for the gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from msda_bench.engine import kernels


def compiled_dropout(x: Tensor, key: Tensor, rate: float) -> Tensor:
    """As `msda_bench.layers.dropout.dropout`, to the last bit, for a tensor on the CPU."""
    dropped: Tensor = _Dropout.apply(x, key, rate)  # type: ignore[no-untyped-call]
    return dropped


class _Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, key: Tensor, rate: float) -> Tensor:
        ctx.key, ctx.rate = key, rate
        source = x.detach().contiguous()
        out = torch.empty_like(source)
        high, low = (np.uint32(half & 0xFFFFFFFF) for half in key.tolist())
        scale = source.numpy().dtype.type(1 / (1 - rate))
        threshold = np.uint32(round(rate * (1 << 31)))
        kernels.dropout(source.view(-1).numpy(), high, low, threshold, scale, out.view(-1).numpy())
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return compiled_dropout(gradient, ctx.key, ctx.rate), None, None
