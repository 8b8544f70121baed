"""Distorts clean images, each in its own random way."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from msda_bench.api import Array
from msda_bench_builtin.datasets.draws import Draws


@dataclass(frozen=True)
class Distortion:
    """The maximum distortions of images; each image draws uniformly up to these.

    Attributes:
        rotation: degrees, either way.
        shift: along each axis, as a fraction of the image's side, either way.
        scale: log of the size, either way.
        aspect: log of the width's ratio to the height, either way.
        blur: share of a blurred copy.
        fade: loss of contrast.
        noise: standard deviation of the noise added to each pixel.
    """

    rotation: float
    shift: float
    scale: float
    aspect: float
    blur: float
    fade: float
    noise: float

    def apply(self, sharp: Array, soft: Array, which: Array, *, size: int, zoom: float, draws: Draws) -> Array:
        """Distorted copies of clean images.

        Args:
            sharp: (c, side, side) clean images in [0, 1].
            soft: (c, side, side) the same, blurred.
            which: (n,) the clean image of each copy.
            size: side of a copy, in pixels.
            zoom: pixels of a clean image to a pixel of an undistorted copy.
            draws: the randomness.

        Returns:
            (n, size, size) uint8.
        """
        n = len(which)

        def either_way(purpose: str, most: float) -> Array:
            return most * (2 * draws.uniform(purpose, (n, 1, 1)) - 1)

        grid = np.arange(size) - (size - 1) / 2
        x = grid[None, None, :] - either_way("shift x", self.shift * size)
        y = grid[None, :, None] - either_way("shift y", self.shift * size)
        angle = np.deg2rad(either_way("rotation", self.rotation))
        smaller, narrower = -either_way("scale", self.scale), -either_way("aspect", self.aspect) / 2
        middle = (sharp.shape[1] - 1) / 2
        column = (np.cos(angle) * x + np.sin(angle) * y) * zoom * np.exp(smaller + narrower) + middle
        row = (np.cos(angle) * y - np.sin(angle) * x) * zoom * np.exp(smaller - narrower) + middle
        blur = self.blur * draws.uniform("blur", (n, 1, 1))
        image = (1 - blur) * bilinear(sharp, which, row, column) + blur * bilinear(soft, which, row, column)
        image = image * (1 - self.fade * draws.uniform("fade", (n, 1, 1))) + self.noise * draws.normal(
            "noise", image.shape
        )
        # In 256 steps, so that the last bit of a machine's cosine makes no difference.
        return np.rint(np.clip(image, 0, 1) * 255).astype(np.uint8)


def bilinear(images: Array, which: Array, row: Array, column: Array) -> Array:
    """Values (n, h, w) of images[which[i]] at (row[i], column[i]), interpolated; outside, those of the edge."""
    last = images.shape[1] - 1
    row, column = np.clip(row, 0, last), np.clip(column, 0, last)
    top, left = np.minimum(row.astype(np.int64), last - 1), np.minimum(column.astype(np.int64), last - 1)
    down, right = row - top, column - left
    i = which[:, None, None]
    upper = images[i, top, left] * (1 - right) + images[i, top, left + 1] * right
    lower = images[i, top + 1, left] * (1 - right) + images[i, top + 1, left + 1] * right
    values: Array = upper * (1 - down) + lower * down
    return values
