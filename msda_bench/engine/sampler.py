"""Which examples make up each step's batches."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from msda_bench.api import Group
from msda_bench.engine.prepare import TrainingData
from msda_bench.functional import random_bits, split_key


class Sampler:
    """Draws every group's batch at random with replacement, a whole epoch at once, on the device.

    Args:
        data: what is drawn from.
        groups: the labelled groups, and the target's own group after them if it is drawn.
        batch: examples of each group in a step.
        steps: steps in an epoch.
        key: (2,) int32 key of the cell's batch stream.
    """

    def __init__(self, data: TrainingData, groups: Sequence[Group], batch: int, steps: int, key: Tensor) -> None:
        device = data.y.device
        members = [torch.cat([_range(data.rows[domain]) for domain in group]) for group in groups]
        sizes = torch.tensor([len(rows) for rows in members])
        self._rows = torch.cat(members).to(device)
        self._size = sizes.view(-1, 1).to(device)
        self._start = (sizes.cumsum(0) - sizes).view(-1, 1).to(device)
        self._shape = (steps, len(groups), batch)
        self._index = torch.arange(steps * len(groups) * batch, dtype=torch.int32, device=device).view(self._shape)
        self._key = key.to(device)

    def epoch(self, number: int) -> Tensor:
        """Rows of the training data: (steps, groups, batch) int64."""
        key = split_key(self._key, torch.tensor(number, dtype=torch.int32, device=self._key.device))
        bits = random_bits(key, self._index).long() & 0xFFFFFFFF
        # The high half of a 32 x 32 bit product is uniform on 0..size-1, to within size / 2^32.
        return self._rows[((bits * self._size) >> 32) + self._start]


def _range(rows: range) -> Tensor:
    return torch.arange(rows.start, rows.stop)
