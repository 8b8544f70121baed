"""Counter-based random numbers: a pure function of a 64-bit key and the element's index.

Each half of the key gets one round of the murmur3 finaliser (Appleby, public domain), in int32 arithmetic that wraps.
CPUs, GPUs and stacked runs therefore draw identical bits. Not for cryptography.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

_GOLDEN = 0x9E3779B1 - (1 << 32)
_FIRST = 0x85EBCA6B - (1 << 32)
_SECOND = 0xC2B2AE35 - (1 << 32)


def _finalise(h: Tensor) -> Tensor:
    # int32 >> is arithmetic in torch; the masks make the shifts logical.
    h = h ^ ((h >> 16) & 0xFFFF)
    h = h * _FIRST
    h = h ^ ((h >> 13) & 0x7FFFF)
    h = h * _SECOND
    return h ^ ((h >> 16) & 0xFFFF)


def random_bits(key: Tensor, index: Tensor) -> Tensor:
    """32 random bits for each index.

    Args:
        key: (..., 2) int32; different keys give unrelated streams.
        index: int32, broadcast against the key's leading dimensions.

    Returns:
        int32 of the broadcast shape; each bit is 0 or 1 with equal probability.
    """
    h = _finalise((index * _GOLDEN) ^ key[..., 0])
    return _finalise((h + index) ^ key[..., 1])


def uniform(key: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Uniform float32 numbers in [0, 1) of the given shape, with 24 random bits each, from a (2,) int32 key."""
    index = torch.arange(math.prod(shape), dtype=torch.int32, device=key.device)
    bits = (random_bits(key, index) >> 8) & 0xFFFFFF
    return (bits.to(torch.float32) * 2.0**-24).reshape(shape)


def normal(key: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Standard normal float32 numbers of the given shape, from a (2,) int32 key (Box and Muller 1958)."""
    first, second = uniform(key, (2, *shape)).unbind()
    radius = (-2 * torch.log1p(-first)).sqrt()
    return radius * torch.cos(2 * math.pi * second)


def keep_mask(key: Tensor, index: Tensor, rate: float) -> Tensor:
    """Which elements dropout at `rate` keeps: bool of the shape of `index` (int32), from a (2,) int32 key."""
    threshold = round(rate * (1 << 31))
    return (random_bits(key, index) & 0x7FFFFFFF) >= threshold


def split_key(key: Tensor, index: Tensor) -> Tensor:
    """An independent key for each index.

    Args:
        key: (..., 2) int32.
        index: int32, broadcast against the key's leading dimensions.

    Returns:
        int32 of the broadcast shape, with a last dimension of 2.
    """
    first = random_bits(key, 2 * index)
    second = random_bits(key, 2 * index + 1)
    return torch.stack([first, second], dim=-1)
