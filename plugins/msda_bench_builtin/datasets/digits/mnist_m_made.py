"""A stand-in for MNIST-M: digits blended with parts of a photograph."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping

import numpy as np

from msda_bench.api import Array
from msda_bench_builtin.datasets.digits.readers import SIDE, Part
from msda_bench_builtin.datasets.features import Draws
from msda_bench_builtin.datasets.images.decode import photograph

_REDUCTIONS = (1, 2, 3)


def _photograph() -> Array:
    """The photograph, (3, height, width) uint8."""
    from PIL import Image

    with Image.open(io.BytesIO(photograph()), formats=["JPEG"]) as image:
        return np.asarray(image.convert("RGB")).transpose(2, 0, 1)


def identity() -> list[str]:
    """The photograph's pixels, which also depend on the library that decodes them."""
    return [hashlib.sha256(np.ascontiguousarray(_photograph()).tobytes()).hexdigest()]


def pieces(count: int, draws: Draws) -> Array:
    """Squares (count, 3, 32, 32) uint8 of the photograph, of random scale, order of colours, and some as negatives.

    Of two random places the one with more contrast is used, since much of the photograph is plain.
    """
    photo = _photograph()
    scales = [_reduced(photo, factor) for factor in _REDUCTIONS]
    orders = np.array([(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)])

    def choices(purpose: str, options: Array | int) -> Array:
        return np.floor(draws.uniform(purpose, (count,)) * options).astype(np.int64)

    scale = choices("scale", len(scales))
    order = choices("colours", len(orders))
    is_negative = choices("negative", 2) == 1
    # Each image's number of possible rows and columns for the upper left corner of a square.
    corners = np.array([image.shape[1:] for image in scales]) - SIDE + 1
    rows, columns = corners[scale].T
    tops = [choices(f"top {place}", rows) for place in range(2)]
    lefts = [choices(f"left {place}", columns) for place in range(2)]
    squares = np.empty((count, 3, SIDE, SIDE), np.uint8)
    for i in range(count):
        image = scales[scale[i]]
        first = _square(image, tops[0][i], lefts[0][i])
        second = _square(image, tops[1][i], lefts[1][i])
        better = max(first, second, key=np.var)
        squares[i] = better[orders[order[i]]]
    squares[is_negative] = 255 - squares[is_negative]
    return squares


def _square(image: Array, top: int, left: int) -> Array:
    return image[:, top : top + SIDE, left : left + SIDE]


def _reduced(photo: Array, factor: int) -> Array:
    """Each square with a side of `factor` pixels as one pixel, rounded down."""
    height = photo.shape[1] // factor
    width = photo.shape[2] // factor
    squares = photo[:, : height * factor, : width * factor].reshape(3, height, factor, width, factor)
    sums: Array = squares.sum((2, 4), dtype=np.int64)
    return (sums // factor**2).astype(np.uint8)


_INK = 128
"""The grey value from which a pixel belongs to the digit."""


def blend(mnist: Part, count: int, identity: tuple[str | int, ...]) -> Mapping[str, Array]:
    """The difference of the first digits and photographs, pixel by pixel: |photograph - digit|, digits black and white.

    Ganin and Lempitsky, "Unsupervised Domain Adaptation by Backpropagation" (ICML 2015), section 4.1, with one
    photograph instead of the 500 of BSDS500. The hard edges are as in the published images, but not as in the text.

    Returns:
        `x` (count, 3, 32, 32) uint8 and `y` (count,) int64.
    """
    paper = pieces(count, Draws(identity))
    is_ink = mnist.x[:count] >= _INK
    return {"x": np.where(is_ink, 255 - paper, paper), "y": mnist.y[:count]}
