"""A stand-in for MNIST-M made from MNIST and pieces of a photograph."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from msda_bench.api import Array
from msda_bench_builtin.datasets.digits.part import Part
from msda_bench_builtin.datasets.digits.photo import pieces
from msda_bench_builtin.datasets.draws import Draws

_INK = 128
"""The grey value from which a pixel belongs to the digit."""


def blend(mnist: Part, count: int, identity: tuple[str | int, ...]) -> Mapping[str, Array]:
    """The difference of digits and photographs, pixel by pixel: |photograph - digit|, digits in black and white.

    Ganin and Lempitsky, "Unsupervised Domain Adaptation by Backpropagation" (ICML 2015), section 4.1, with one
    photograph instead of the 500 of BSDS500. The hard edges are as in the published images, but not as in the text.

    Args:
        mnist: digits.
        count: the number of digits, from the first.
        identity: of the random numbers.

    Returns:
        `x` (count, 3, 32, 32) uint8 and `y` (count,) int64.
    """
    made = pieces(count, Draws(identity))
    return {"x": np.where(mnist.x[:count] >= _INK, 255 - made, made), "y": mnist.y[:count]}
