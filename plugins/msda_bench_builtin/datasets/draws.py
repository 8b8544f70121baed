"""Random numbers that are the same on every machine and with every release of numpy."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass

import numpy as np

from msda_bench.api import Array


@dataclass(frozen=True)
class Draws:
    """Random numbers for one identity, such as a domain of a dataset; another one gives unrelated numbers.

    Each purpose has its own stream, so that a larger shape begins with the numbers of a smaller one.
    """

    identity: tuple[str | int, ...]

    def uniform(self, purpose: str, shape: tuple[int, ...]) -> Array:
        """Numbers in (0, 1), float64."""
        name = json.dumps([*self.identity, purpose])
        key = int.from_bytes(hashlib.sha256(name.encode()).digest()[:16], "little")
        # The raw stream of a counter-based generator is fixed; the methods of numpy's Generator may change.
        raw = np.random.Philox(key=key).random_raw(math.prod(shape))
        numbers: Array = ((raw >> np.uint64(12)) + 0.5) * 2.0**-52
        return numbers.reshape(shape)

    def normal(self, purpose: str, shape: tuple[int, ...]) -> Array:
        """Standard normal numbers, float64, by Box and Muller's formula."""
        pairs = self.uniform(purpose, (math.prod(shape), 2))
        numbers: Array = np.sqrt(-2 * np.log(pairs[:, 0])) * np.cos(2 * np.pi * pairs[:, 1])
        return numbers.reshape(shape)
