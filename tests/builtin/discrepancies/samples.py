"""Features of some sources and a target."""

from __future__ import annotations

import torch
from torch import Tensor


def features(k: int = 3, b: int = 8, d: int = 5) -> tuple[Tensor, Tensor]:
    """Source features (k, b, d), each source farther away, and target features (b, d), float64 with gradients."""
    generator = torch.Generator().manual_seed(0)
    shift = torch.arange(k, dtype=torch.float64).view(k, 1, 1)
    source = torch.randn(k, b, d, dtype=torch.float64, generator=generator) * (1 + shift) + shift
    return source.requires_grad_(), torch.randn(b, d, dtype=torch.float64, generator=generator).requires_grad_()
