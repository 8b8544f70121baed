"""Random crops, mirroring and colour changes of batches of images, on their device.

torchvision's transforms draw from torch's global generator, once for a whole batch. Here every image has its own draws
from a run's key, and the batch is one expression without branches, so that runs can be stacked. For the same draws the
pixels are those of torchvision's functions, which a test compares.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from msda_bench.functional import uniform

_LUMA = (0.2989, 0.587, 0.114)
_RATIO = 4 / 3
"""The maximum ratio of width to height of a scaled crop, and of height to width."""
_DRAWS = 16
"""Random numbers of each image; more than are used, so that a new one changes none of the others."""
_ERASED = (0.02, 0.2)
"""Least and largest share of an image that is erased."""


class Recipe(NamedTuple):
    """The changes of images.

    Attributes:
        scale: least and largest share of the image's area that a crop shows; None for a square of `size` pixels.
        flip: whether half of the images are mirrored.
        jitter: brightness, contrast and saturation are multiplied by 1 - jitter to 1 + jitter.
        grey: the share of images that lose their colours.
        erase: the share of images in which a rectangle becomes grey.
    """

    scale: tuple[float, float] | None = None
    flip: bool = False
    jitter: float = 0.0
    grey: float = 0.0
    erase: float = 0.0


def changed(x: Tensor, key: Tensor, size: int, recipe: Recipe) -> Tensor:
    """Images (n, 3, h, w) in 0..1 as (n, 3, size, size), each changed by its own draws from one (2,) key."""
    draws = uniform(key, (len(x), _DRAWS)).to(x.dtype)
    if recipe.scale is not None or recipe.flip or x.shape[-2:] != (size, size):
        x = cropped(x, box(draws[:, :4], tuple(x.shape[-2:]), size, recipe.scale), draws[:, 4] < recipe.flip / 2, size)
    if recipe.jitter:
        x = coloured(x, 1 + recipe.jitter * (2 * draws[:, 5:8] - 1))
    if recipe.grey:
        x = torch.where(_per_image(draws[:, 8] < recipe.grey), luma(x).expand_as(x), x)
    return _erased(x, draws[:, 9:13], recipe.erase) if recipe.erase else x


def centre(x: Tensor, size: int) -> Tensor:
    """The square of `size` pixels in the middle of each image."""
    top, left = ((side - size) // 2 for side in x.shape[-2:])
    return x[..., top : top + size, left : left + size]


def box(draws: Tensor, shape: tuple[int, ...], size: int, scale: tuple[float, float] | None) -> Tensor:
    """(n, 4) left, top, width and height of a random crop in pixels, from (n, 4) draws; whole pixels without a scale.

    As torchvision's RandomResizedCrop, but a crop that is wider or higher than the image is cut to it rather than drawn
    again.
    """
    height, width = shape
    if scale is None:
        left = (draws[:, 2] * (width - size + 1)).floor()
        top = (draws[:, 3] * (height - size + 1)).floor()
        side = torch.full_like(left, size)
        return torch.stack([left, top, side, side], 1)
    area = (scale[0] + (scale[1] - scale[0]) * draws[:, 0]) * (height * width)
    ratio = torch.exp(math.log(_RATIO) * (2 * draws[:, 1] - 1))
    wide, high = (area * ratio).sqrt().clamp(max=width), (area / ratio).sqrt().clamp(max=height)
    return torch.stack([draws[:, 2] * (width - wide), draws[:, 3] * (height - high), wide, high], 1)


def cropped(x: Tensor, boxes: Tensor, mirrored: Tensor, size: int) -> Tensor:
    """The boxes (n, 4) of images (n, 3, h, w), optionally mirrored, as squares of `size` pixels (bilinear)."""
    height, width = x.shape[-2:]
    left, top, wide, high = (column.unsqueeze(1) for column in boxes.unbind(1))
    middle = (torch.arange(size, device=x.device, dtype=x.dtype) + 0.5) / size
    across = torch.where(mirrored.unsqueeze(1), 1 - middle, middle)
    # From -1 at the left or upper edge of the image to 1 at the other.
    columns, rows = 2 * (left + across * wide) / width - 1, 2 * (top + middle * high) / height - 1
    shape = (len(x), size, size)
    grid = torch.stack([columns.unsqueeze(1).expand(shape), rows.unsqueeze(2).expand(shape)], -1)
    return functional.grid_sample(x, grid, padding_mode="border", align_corners=False)


def coloured(x: Tensor, factors: Tensor) -> Tensor:
    """Images with their brightness, contrast and saturation, in this order, multiplied by factors (n, 3)."""
    brightness, contrast, saturation = (_per_image(factor) for factor in factors.unbind(1))
    x = (x * brightness).clamp(0, 1)
    mean = luma(x).mean((-3, -2, -1), keepdim=True)
    x = (mean + contrast * (x - mean)).clamp(0, 1)
    grey = luma(x)
    return (grey + saturation * (x - grey)).clamp(0, 1)


def luma(x: Tensor) -> Tensor:
    """(n, 1, h, w): the lightness of each pixel."""
    red, green, blue = (weight * x[:, place : place + 1] for place, weight in enumerate(_LUMA))
    return red + green + blue


def _erased(x: Tensor, draws: Tensor, rate: float) -> Tensor:
    height, width = x.shape[-2:]
    area = _ERASED[0] + (_ERASED[1] - _ERASED[0]) * draws[:, 1]
    side = area.sqrt()
    across, down = (draws[:, place] * (1 - side) for place in (2, 3))
    columns = (torch.arange(width, device=x.device, dtype=x.dtype) + 0.5) / width
    rows = (torch.arange(height, device=x.device, dtype=x.dtype) + 0.5) / height
    within = [
        (start.unsqueeze(1) <= pixels) & (pixels < (start + side).unsqueeze(1))
        for start, pixels in ((down, rows), (across, columns))
    ]
    chosen = (draws[:, 0] < rate).view(-1, 1, 1) & within[0].unsqueeze(2) & within[1].unsqueeze(1)
    return torch.where(chosen.unsqueeze(1), 0.5, x)


def _per_image(numbers: Tensor) -> Tensor:
    return numbers.view(-1, 1, 1, 1)
