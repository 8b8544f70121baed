"""Normalises colours as a pretrained network expects them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

MEAN = (0.485, 0.456, 0.406)
DEVIATION = (0.229, 0.224, 0.225)


class Normalise(nn.Module):
    """Subtracts each channel's mean and divides by its standard deviation; by default those of ImageNet.

    Maps (n, channels, height, width) float32 in [0, 1] to float32 of equal shape.
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, mean: Sequence[float] = MEAN, deviation: Sequence[float] = DEVIATION) -> None:
        super().__init__()
        for name, values in (("mean", mean), ("deviation", deviation)):
            self.register_buffer(name, torch.tensor([*values]).view(-1, 1, 1), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """The normalised images, with the shape of `x`."""
        return (x - self.mean) / self.deviation
