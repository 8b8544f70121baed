"""Operations and bytes of one DARN step on Amazon-shaped work: what no implementation can do without."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from msda_bench.api import Array

SOURCES, BATCH = 3, 20
INPUT, HIDDEN, CLASSES = 5000, (1000, 500, 100), 2
KEPT = 0.3
"""Of the input's values under dropout 0.7."""
FLOAT = 4
UPDATE = 6 * FLOAT
"""Bytes of an Adadelta update: weight and two accumulators, read and written."""
DENSE_WEIGHT = UPDATE + 4 * FLOAT
"""The same, the gradient written and read, and the weight read in the forward and in the backward pass."""
BAG_WEIGHT = UPDATE + FLOAT
"""The same for a weight of a bag of words: its gradient need not be stored, its input needs no gradient."""


class Occurrence(NamedTuple):
    """Means over the steps, after dropout.

    Attributes:
        stored: values that are not zero in all domains' batches.
        words: different words among them.
    """

    stored: float
    words: float


class Work(NamedTuple):
    """Floating point operations and bytes to and from memory."""

    operations: float
    traffic: float


def sparse_work(occurrence: Occurrence) -> Work:
    """Of a step that leaves zeros out and updates the words that occur."""
    products = 2 * 2 * occurrence.stored * HIDDEN[0]
    weights = occurrence.words * HIDDEN[0]
    return Work(products + _upper_products(), weights * BAG_WEIGHT + _upper_weights() * DENSE_WEIGHT)


def dense_work() -> Work:
    """Of a step that does not know of zeros."""
    products = 2 * 2 * (SOURCES + 1) * BATCH * INPUT * HIDDEN[0]
    weights = INPUT * HIDDEN[0] + _upper_weights()
    return Work(products + _upper_products(), weights * DENSE_WEIGHT)


def count(domains: list[Array], steps: int, seed: int) -> Occurrence:
    """Counts over random batches of dense domains (n, words) what a step touches."""
    generator = np.random.default_rng(seed)
    seen = np.array([_touched(domains, generator) for _ in range(steps)])
    return Occurrence(*seen.mean(0).tolist())


def _touched(domains: list[Array], generator: np.random.Generator) -> tuple[int, int]:
    batch = np.concatenate([x[generator.integers(0, len(x), BATCH)] for x in domains])
    kept = (batch != 0) & (generator.random(batch.shape) < KEPT)
    return int(kept.sum()), int(kept.any(0).sum())


def _upper_products() -> float:
    """Above the first layer: a product forward and two backward, two operations a term."""
    layers = (SOURCES + 1) * BATCH * sum(narrow * wide for narrow, wide in pairwise(HIDDEN))
    predictor = SOURCES * BATCH * HIDDEN[-1] * CLASSES
    critics = SOURCES * 2 * BATCH * HIDDEN[-1]
    return 3 * 2 * (layers + predictor + critics)


def _upper_weights() -> int:
    """All weights and biases but the first layer's weight."""
    layers = HIDDEN[0] + sum((narrow + 1) * wide for narrow, wide in pairwise(HIDDEN))
    return layers + (HIDDEN[-1] + 1) * (CLASSES + SOURCES)
