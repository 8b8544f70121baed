"""Chooses the examples on which a run trains and is tested."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from msda_bench.api import Array, Dataset
from msda_bench.component.sizes import Extent, counts, is_transductive


@dataclass(frozen=True, eq=False)
class Split:
    """Rows of one domain.

    Attributes:
        train: int64 indices, in random order.
        test: int64 indices, in random order; for a source, the examples held out from training.
    """

    train: Array
    test: Array


def split(data: Dataset, target: str, domains: Mapping[str, int | Array], *, seed: int) -> dict[str, Split]:
    """Splits each domain, as a function of (dataset, target, seed) and of that domain alone.

    So all methods of a (target, seed) pair share a split, and a smaller training set is a prefix of a larger one. Rows
    are ranked by numbers of a counter-based generator's raw stream, which no release of numpy changes. Official test
    examples are never trained on, and a domain that has some is tested on them only; the transductive protocol uses all
    of the target's examples for both.

    Args:
        data: the dataset, whose parameters set the numbers of examples.
        target: the target domain, one of `domains`.
        domains: for each domain, its number of examples n, or a (n,) bool mask of its official test examples.
        seed: the run's seed.

    Raises:
        DataError: a domain has too few examples to train on, or the target has none to be tested on.
    """
    splits = {}
    for domain, extent in domains.items():
        official = None if isinstance(extent, int) else np.asarray(extent, bool)
        order = permutation(extent if isinstance(extent, int) else len(extent), data.name, target, seed, domain)
        trained, tested = counts(data, domain, target, extent_of(extent))
        if is_transductive(data) and domain == target:
            splits[domain] = Split(order, order)
            continue
        pool = order if official is None else order[~official[order]]
        rest = pool[trained:] if official is None else order[official[order]]
        splits[domain] = Split(pool[:trained], rest[:tested])
    return splits


def extent_of(found: int | Array) -> Extent:
    """The number of examples of a domain, or of its parts by a mask of the official test examples."""
    if isinstance(found, int):
        return found
    tested = int(np.asarray(found, bool).sum())
    return len(found) - tested, tested


def permutation(size: int, dataset: str, target: str, seed: int, domain: str) -> Array:
    """A random order of `size` rows, int64; the same on every machine and with every numpy."""
    identity = json.dumps(["split", dataset, target, seed, domain])
    key = int.from_bytes(hashlib.sha256(identity.encode()).digest()[:16], "little")
    return np.argsort(np.random.Philox(key=key).random_raw(size), kind="stable")
