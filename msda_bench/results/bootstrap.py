"""Bootstraps over seeds, stratified by target: each target's seeds are resampled separately.

After Agarwal et al. 2021, "Deep Reinforcement Learning at the Edge of the Statistical Precipice" (NeurIPS 34), section
4.1: each resample draws as many seeds per target as it has, with replacement, from that target's own. The interval
lies between two percentiles of the resampled statistic (Efron 1979). The draws come from a counter-based stream that
depends only on the target's name and its number of seeds, so that identical records give identical bytes. For the same
reason sums are taken run by run: a library's matrix product may round differently on another machine.
"""

from __future__ import annotations

import hashlib
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 2000

Counts: TypeAlias = NDArray[np.int32]


def drawn(target: str, n: int, side: int) -> Counts:
    """How often each resample draws each of a target's n seeds: (n, RESAMPLES) int32, whose columns sum to n.

    Two methods that are drawn separately are sides 0 and 1.
    """
    key = int.from_bytes(hashlib.sha256(f"bootstrap {target}".encode()).digest()[:16], "big")
    # The raw output: numpy guarantees only this across versions, not the numbers derived from it.
    stream, counts = np.random.Philox(key=key, counter=[0, 0, side, n]), np.zeros((n, RESAMPLES), np.int32)
    for _ in range(n):
        raw: NDArray[np.uint64] = stream.random_raw(RESAMPLES)
        counts[((raw >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32), np.arange(RESAMPLES)] += 1
    return counts
