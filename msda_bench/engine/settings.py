"""Process settings under which a run's numbers repeat to the last bit."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch


@contextlib.contextmanager
def deterministic(device: torch.device) -> Iterator[None]:
    """One thread on the CPU, denormals flushed to zero; the settings are put back after.

    One thread, because sums that threads share depend on their number; and two processes of one thread each are faster
    than one process of two. Denormals, because they fill Adadelta's decaying accumulators, and slow a CPU down.
    """
    threads = torch.get_num_threads()
    if device.type == "cpu":
        torch.set_num_threads(1)
    ours = torch.get_num_threads()
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)
        # A number that a component changed is left for `restored`, which reports it.
        if torch.get_num_threads() == ours:
            torch.set_num_threads(threads)
