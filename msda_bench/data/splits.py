"""Which examples a run trains on and which it is tested on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from msda_bench.api import Array
from msda_bench.errors import DataError


@dataclass(frozen=True, eq=False)
class Split:
    """Rows of one domain.

    Attributes:
        train: int64 indices, in random order.
        test: int64 indices, in random order; of a source, the examples held out from training.
    """

    train: Array
    test: Array


def split(
    dataset: str,
    target: str,
    domains: Mapping[str, int | Array],
    *,
    seed: int,
    train: int,
    test: int | None = None,
) -> dict[str, Split]:
    """Splits each domain, as a function of (dataset, target, seed) and of that domain alone.

    So all methods of a (target, seed) pair share a split, and a smaller training set is a prefix of a larger one.
    Rows are ranked by numbers of a counter-based generator's raw stream, which no release of numpy changes.

    Args:
        dataset: name of the dataset.
        target: the target domain, one of `domains`.
        domains: of each domain, its number of examples n, or a (n,) bool mask of its official test examples.
        seed: the run's seed.
        train: training examples of each domain; never official test examples.
        test: most test examples of each domain; all that are left when None. They are official test examples where
            there are any.

    Raises:
        DataError: a domain has too few examples to train on, or the target none to be tested on.
    """
    splits = {}
    for domain, extent in domains.items():
        official = None if isinstance(extent, int) else np.asarray(extent, bool)
        size = extent if isinstance(extent, int) else len(extent)
        order = permutation(size, dataset, target, seed, domain)
        pool = order if official is None else order[~official[order]]
        if len(pool) < train:
            raise DataError(
                f"dataset {dataset}: domain {domain!r} has {len(pool)} examples to train on, fewer than "
                f"train = {train}; set a smaller `train`"
            )
        rest = pool[train:] if official is None else order[official[order]]
        splits[domain] = Split(pool[:train], rest[:test])
    if not len(splits[target].test):
        raise DataError(f"dataset {dataset}: target {target!r} has no test examples left; set a smaller `train`")
    return splits


def permutation(size: int, dataset: str, target: str, seed: int, domain: str) -> Array:
    """A random order of `size` rows, int64; the same on every machine and with every numpy."""
    identity = json.dumps(["split", dataset, target, seed, domain])
    key = int.from_bytes(hashlib.sha256(identity.encode()).digest()[:16], "little")
    return np.argsort(np.random.Philox(key=key).random_raw(size), kind="stable")
