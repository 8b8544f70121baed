"""A cell's own random streams, one for each purpose."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator

import torch
from torch import Tensor

from msda_bench.suite.cell import Cell

CPU = torch.device("cpu")


def stream_key(cell: Cell, *purpose: str | int) -> Tensor:
    """The (2,) int32 key of a stream.

    It depends on the dataset's name, the target, the seed and the purpose. It does not depend on the method, so that
    methods are compared on common random numbers; nor on the stack, the order, or resuming.
    """
    return torch.tensor(_halves(cell, *purpose), dtype=torch.int32)


def _halves(cell: Cell, *purpose: str | int) -> list[int]:
    identity = json.dumps([cell.dataset.name, cell.target, cell.seed, *purpose])
    digest = hashlib.sha256(identity.encode()).digest()
    return [int.from_bytes(digest[at : at + 4], "big", signed=True) for at in (0, 4)]


@contextlib.contextmanager
def seeded(cell: Cell, purpose: str, device: torch.device = CPU) -> Iterator[None]:
    """Runs a block with torch's global generators, the CPU's and the device's, seeded for the cell; restores them."""
    high, low = _halves(cell, purpose)
    seed = ((high & 0xFFFFFFFF) << 32 | (low & 0xFFFFFFFF)) & 0x7FFFFFFFFFFFFFFF
    on_gpu = device.type == "cuda"
    with torch.random.fork_rng(devices=[device] if on_gpu else []):
        torch.default_generator.manual_seed(seed)
        if on_gpu:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)
        yield
