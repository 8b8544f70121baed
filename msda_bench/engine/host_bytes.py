"""Examples of bytes that stay on the host, such as images in files mapped into memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from torch import Tensor

from msda_bench.api import Array

_AT_ONCE = 1024


@dataclass(frozen=True, eq=False)
class HostBytes:
    """Rows of arrays, copied only when a batch of them is needed.

    Processes that train on the same files share the system's cache of them, and each holds one batch only.

    Attributes:
        arrays: (m, *shape) uint8 each, read-only.
        rows: (n, 2) int64, on the host: the array of each example and its row there.
        device: where batches go.
    """

    arrays: tuple[Array, ...]
    rows: Tensor
    device: torch.device

    @classmethod
    def of(cls, array: Array, rows: Array, device: torch.device) -> HostBytes:
        """The rows (n,) of one array."""
        own = torch.from_numpy(np.array(rows, np.int64))
        return cls((array,), torch.stack([torch.zeros_like(own), own], 1), device)

    @property
    def shape(self) -> tuple[int, ...]:
        """(n, *shape)."""
        return (len(self.rows), *self.arrays[0].shape[1:])

    def __len__(self) -> int:
        return len(self.rows)

    @staticmethod
    def concatenate(parts: Sequence[HostBytes]) -> HostBytes:
        """The examples of all parts, in order; an array that several parts share is held once."""
        arrays = list({id(array): array for part in parts for array in part.arrays}.values())
        place = {id(array): number for number, array in enumerate(arrays)}
        rows = []
        for part in parts:
            numbers = torch.tensor([place[id(array)] for array in part.arrays])
            rows.append(torch.stack([numbers[part.rows[:, 0]], part.rows[:, 1]], 1))
        return HostBytes(tuple(arrays), torch.cat(rows), parts[0].device)

    def take(self, rows: Tensor) -> HostBytes:
        """The examples at (n,) int64 rows, not yet copied."""
        return HostBytes(self.arrays, self.rows[rows.cpu()], self.device)

    def gather(self, rows: Tensor) -> Tensor:
        """The bytes (*rows.shape, *shape) on the device of the examples at int64 rows; a GPU need not wait for them."""
        wanted = self.rows[rows.cpu().flatten()].numpy()
        on_gpu = self.device.type == "cuda"
        found = torch.empty(len(wanted), *self.shape[1:], dtype=torch.uint8, pin_memory=on_gpu)
        for number, array in enumerate(self.arrays):
            (of_it,) = np.nonzero(wanted[:, 0] == number)
            found.numpy()[of_it] = cast("Array", array[wanted[of_it, 1]])
        return found.to(self.device, non_blocking=True).view(*rows.shape, *self.shape[1:])

    def resident(self) -> Tensor:
        """All bytes (n, *shape), on the device."""
        found = torch.empty(self.shape, dtype=torch.uint8, device=self.device)
        for some in filter(len, torch.split(torch.arange(len(self)), _AT_ONCE)):
            found[some[0] : some[-1] + 1] = self.gather(some)
        return found
