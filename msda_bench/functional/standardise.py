"""Standardises columns to mean 0 and variance 1, using training examples only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


def standardiser(train: Mapping[str, Array], by: Literal["domain", "pooled"]) -> Callable[[str, Array], Array]:
    """Learns to standardise inputs, as a dataset's `fit` may return it.

    Each column gets mean 0 and variance 1 over the training inputs of its own domain, or of all domains. A constant
    column becomes 0.

    Args:
        train: the training inputs (n, ...) of each domain.
        by: "domain" for each domain's own mean and variance, "pooled" for those of all domains.

    Returns:
        A function of a domain's name and its inputs (n, ...) that returns float32 of equal shape. With "domain" it
        raises `KeyError` for a domain without training inputs.
    """
    whole = {"": np.concatenate(list(train.values()))} if by == "pooled" else train
    scales = {domain: _scale(x.astype(np.float64)) for domain, x in whole.items()}

    def standardise(domain: str, x: Array) -> Array:
        mean, deviation = scales["" if by == "pooled" else domain]
        return ((x - mean) / deviation).astype(np.float32)

    return standardise


def _scale(x: Array) -> tuple[Array, Array]:
    deviation = x.std(0)
    # Rounding can make the deviation of a constant column slightly larger than 0.
    constant = x.min(0) == x.max(0)
    return np.where(constant, x[0], x.mean(0)), np.where(constant, 1, deviation)
