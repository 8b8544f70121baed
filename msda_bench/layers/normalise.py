"""Colours as a network saw them when it was trained."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

MEAN = (0.485, 0.456, 0.406)
DEVIATION = (0.229, 0.224, 0.225)


class Normalise(nn.Module):
    """Subtracts each channel's mean and divides by its deviation; those of ImageNet unless others are given.

    Maps (n, channels, height, width) float32 in 0..1 to the same shape.
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, mean: Sequence[float] = MEAN, deviation: Sequence[float] = DEVIATION) -> None:
        super().__init__()
        for name, values in (("mean", mean), ("deviation", deviation)):
            self.register_buffer(name, torch.tensor([*values]).view(-1, 1, 1), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """The same shape as `x`."""
        return (x - self.mean) / self.deviation
