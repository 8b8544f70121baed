"""Chooses the examples of each step's batches."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from msda_bench.api import Group
from msda_bench.engine.prepare import TrainingData
from msda_bench.functional import random_bits, split_key


class Sampler:
    """Draws every group's batch at random with replacement, or takes it in order, an epoch at once, on the device.

    Each group has a stream of its own, so its batches do not depend on which other groups are drawn.

    Args:
        data: the data to draw from.
        groups: the labelled groups, followed by the target's group if it is drawn.
        batch: examples of each group in a step.
        steps: steps in an epoch.
        keys: (groups, 2) int32, the key of each group's stream.
        whole: take every group's examples in their order, over and over, rather than draw them.
    """

    def __init__(
        self,
        data: TrainingData,
        groups: Sequence[Group],
        batch: int,
        steps: int,
        keys: Tensor,
        *,
        whole: bool = False,
    ) -> None:
        device = data.y.device
        members = [torch.cat([data.rows[domain] for domain in group]) for group in groups]
        sizes = torch.tensor([len(rows) for rows in members])
        self._rows = torch.cat(members).to(device)
        self._size = sizes.view(-1, 1).to(device)
        self._start = (sizes.cumsum(0) - sizes).view(-1, 1).to(device)
        self._index = torch.arange(steps * batch, dtype=torch.int32, device=device).view(steps, 1, batch)
        self._keys = keys.to(device)
        self._whole = whole

    def epoch(self, number: int) -> tuple[Tensor, Tensor]:
        """Rows of the training data, and their places within their groups: each (steps, groups, batch) int64."""
        places = self._places(number)
        return self._rows[places + self._start], places

    def _places(self, number: int) -> Tensor:
        if self._whole:
            in_order = torch.arange(self._index.shape[-1], device=self._rows.device)
            return (in_order % self._size).expand(len(self._index), -1, -1)
        # Filled, not copied: a copy from the host would make it wait.
        keys = split_key(self._keys, torch.full((), number, dtype=torch.int32, device=self._keys.device))
        bits = random_bits(keys.unsqueeze(1), self._index).long() & 0xFFFFFFFF
        # The high half of a 32 x 32 bit product is uniform on 0..size-1, to within size / 2^32.
        return (bits * self._size) >> 32
