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

from msda_bench.api import Strength
from msda_bench.functional import uniform

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


VIEWS: dict[Strength, Recipe] = {
    "weak": Recipe((0.7, 1.0), flip=True),
    "strong": Recipe((0.7, 1.0), flip=True, jitter=0.4, grey=0.2, erase=0.5),
}
"""The changes in the views of an image, see `Dataset.view`."""


def changed(x: Tensor, key: Tensor, size: int, recipe: Recipe) -> Tensor:
    """Images (n, 3, h, w) in 0..1 as (n, 3, size, size), each changed by its own draws from one (2,) key."""
    draws = uniform(key, (len(x), _DRAWS)).to(x.dtype)
    shape = tuple(x.shape[-2:])
    if recipe.scale is not None or recipe.flip or shape != (size, size):
        boxes = box(draws[:, :4], shape, size, recipe.scale)
        mirrored = draws[:, 4] < recipe.flip / 2
        x = cropped(x, boxes, mirrored, size)
    if recipe.jitter:
        either_way = 2 * draws[:, 5:8] - 1
        x = coloured(x, 1 + recipe.jitter * either_way)
    if recipe.grey:
        is_grey = _per_image(draws[:, 8] < recipe.grey)
        x = torch.where(is_grey, luma(x).expand_as(x), x)
    if recipe.erase:
        x = _erased(x, draws[:, 9:13], recipe.erase)
    return x


def centre(x: Tensor, size: int) -> Tensor:
    """The square of `size` pixels in the middle of each image."""
    height, width = x.shape[-2:]
    top = (height - size) // 2
    left = (width - size) // 2
    return x[..., top : top + size, left : left + size]


def box(draws: Tensor, shape: tuple[int, ...], size: int, scale: tuple[float, float] | None) -> Tensor:
    """(n, 4) left, top, width and height of a random crop in pixels, from (n, 4) draws; whole pixels without a scale.

    As torchvision's RandomResizedCrop, but a crop that is wider or higher than the image is cut to it rather than drawn
    again.
    """
    height, width = shape
    how_large, how_wide, across, down = draws.unbind(1)
    if scale is None:
        left = (across * (width - size + 1)).floor()
        top = (down * (height - size + 1)).floor()
        side = torch.full_like(left, size)
        return torch.stack([left, top, side, side], 1)
    least, most = scale
    share = least + (most - least) * how_large
    area = share * (height * width)
    ratio = torch.exp(math.log(_RATIO) * (2 * how_wide - 1))
    wide = (area * ratio).sqrt().clamp(max=width)
    high = (area / ratio).sqrt().clamp(max=height)
    left = across * (width - wide)
    top = down * (height - high)
    return torch.stack([left, top, wide, high], 1)


def cropped(x: Tensor, boxes: Tensor, mirrored: Tensor, size: int) -> Tensor:
    """The boxes (n, 4) of images (n, 3, h, w), optionally mirrored, as squares of `size` pixels (bilinear)."""
    height, width = x.shape[-2:]
    left, top, wide, high = (column.unsqueeze(1) for column in boxes.unbind(1))
    middle = _middles(size, x)
    across = torch.where(mirrored.unsqueeze(1), 1 - middle, middle)
    # From -1 at the left or upper edge of the image to 1 at the other.
    columns = 2 * (left + across * wide) / width - 1
    rows = 2 * (top + middle * high) / height - 1
    shape = (len(x), size, size)
    columns = columns.unsqueeze(1).expand(shape)
    rows = rows.unsqueeze(2).expand(shape)
    grid = torch.stack([columns, rows], -1)
    return functional.grid_sample(x, grid, padding_mode="border", align_corners=False)


def _middles(pixels: int, like: Tensor) -> Tensor:
    """The middles of pixels in a row, from 0 to 1."""
    return (torch.arange(pixels, device=like.device, dtype=like.dtype) + 0.5) / pixels


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
    red = x[:, 0:1]
    green = x[:, 1:2]
    blue = x[:, 2:3]
    return 0.2989 * red + 0.587 * green + 0.114 * blue


def _erased(x: Tensor, draws: Tensor, rate: float) -> Tensor:
    """Images, this share of them with a grey rectangle, by draws (n, 4): whether, how large, how far right and down."""
    whether, how_large, right, down = draws.unbind(1)
    height, width = x.shape[-2:]
    least, most = _ERASED
    side = (least + (most - least) * how_large).sqrt()
    chosen = (whether < rate).view(-1, 1, 1)
    rows = _between(_middles(height, x), down * (1 - side), side)
    columns = _between(_middles(width, x), right * (1 - side), side)
    inside = chosen & rows.unsqueeze(2) & columns.unsqueeze(1)
    return torch.where(inside.unsqueeze(1), 0.5, x)


def _between(middles: Tensor, start: Tensor, length: Tensor) -> Tensor:
    """(n, pixels): which pixels lie between a start and an end, both (n,)."""
    first = start.unsqueeze(1)
    last = (start + length).unsqueeze(1)
    return (first <= middles) & (middles < last)


def _per_image(numbers: Tensor) -> Tensor:
    return numbers.view(-1, 1, 1, 1)
