"""Operations and bytes of one DARN step: what no implementation can do without."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from msda_bench.api import Array

SOURCES = 3
BATCH, INPUT, HIDDEN, CLASSES = 20, 5000, (1000, 500, 100), 2
"""Amazon-shaped."""
KEPT = 0.3
"""Of the input's values under dropout 0.7."""
IMAGES, SIDE, CHANNELS, KERNEL = 128, 32, (3, 64, 128, 256), 3
PREDICTOR, CRITIC = (2304, 2048, 1024, 10), (2304, 2048, 2048, 1)
"""Digits-shaped."""
FLOAT = 4
UPDATE = 6 * FLOAT
"""Bytes of an Adadelta update: weight and two accumulators, read and written."""
DENSE_WEIGHT = UPDATE + 4 * FLOAT
"""The same, the gradient written and read, and the weight read in the forward and in the backward pass."""
BAG_WEIGHT = UPDATE + FLOAT
"""The same for a weight of a bag of words: its gradient need not be stored, its input needs no gradient."""
ACTIVATION = 4 * FLOAT
"""Bytes of a convolution's output: written and read, and its gradient written and read."""
TRAINED, FIRST = 3, 2
"""Products in a layer: forward, and backward for the weight and for the input, which the first layer does not need."""


class Occurrence(NamedTuple):
    """Means over the steps, after dropout.

    Attributes:
        stored: values that are not zero in all domains' batches.
        words: different words among them.
    """

    stored: float
    words: float


class Demand(NamedTuple):
    """Floating point operations and bytes to and from memory."""

    operations: float
    traffic: float


def sparse_amazon(occurrence: Occurrence) -> Demand:
    """Of an Amazon-shaped step that leaves zeros out and updates the words that occur."""
    products = FIRST * 2 * occurrence.stored * HIDDEN[0]
    weights = occurrence.words * HIDDEN[0]
    return Demand(products + _upper_products(), weights * BAG_WEIGHT + _upper_weights() * DENSE_WEIGHT)


def dense_amazon() -> Demand:
    """Of an Amazon-shaped step that does not know of zeros."""
    products = FIRST * 2 * (SOURCES + 1) * BATCH * INPUT * HIDDEN[0]
    weights = INPUT * HIDDEN[0] + _upper_weights()
    return Demand(products + _upper_products(), weights * DENSE_WEIGHT)


def digits() -> Demand:
    """Of a digits-shaped step."""
    operations, weights, outputs, side = 0, 0, 0, SIDE
    for place, (narrow, wide) in enumerate(pairwise(CHANNELS)):
        side -= KERNEL - 1
        pixels = (SOURCES + 1) * IMAGES * side**2
        operations += (TRAINED if place else FIRST) * 2 * pixels * KERNEL**2 * narrow * wide
        weights += (KERNEL**2 * narrow + 1) * wide
        outputs += pixels * wide
        side = -(-side // 2)
    operations += TRAINED * 2 * SOURCES * IMAGES * (_products(PREDICTOR) + 2 * _products(CRITIC))
    weights += _weights(PREDICTOR) + SOURCES * _weights(CRITIC)
    return Demand(operations, weights * DENSE_WEIGHT + outputs * ACTIVATION)


def count(domains: list[Array], steps: int, seed: int) -> Occurrence:
    """Counts over random batches of dense domains (n, words) what an Amazon-shaped step touches."""
    generator = np.random.default_rng(seed)
    seen = np.array([_touched(domains, generator) for _ in range(steps)])
    return Occurrence(*seen.mean(0).tolist())


def _touched(domains: list[Array], generator: np.random.Generator) -> tuple[int, int]:
    batch = np.concatenate([x[generator.integers(0, len(x), BATCH)] for x in domains])
    kept = (batch != 0) & (generator.random(batch.shape) < KEPT)
    return int(kept.sum()), int(kept.any(0).sum())


def _upper_products() -> float:
    """Above the Amazon network's first layer, two operations a term."""
    layers = (SOURCES + 1) * BATCH * _products(HIDDEN)
    predictor = SOURCES * BATCH * HIDDEN[-1] * CLASSES
    critics = SOURCES * 2 * BATCH * HIDDEN[-1]
    return TRAINED * 2 * (layers + predictor + critics)


def _upper_weights() -> int:
    """All weights and biases of the Amazon network, the predictor and the critics, but the first layer's weight."""
    return HIDDEN[0] + _weights(HIDDEN) + (HIDDEN[-1] + 1) * (CLASSES + SOURCES)


def _products(widths: Sequence[int]) -> int:
    """Terms of one example's products."""
    return sum(narrow * wide for narrow, wide in pairwise(widths))


def _weights(widths: Sequence[int]) -> int:
    return sum((narrow + 1) * wide for narrow, wide in pairwise(widths))
