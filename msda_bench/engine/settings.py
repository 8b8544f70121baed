"""Process settings under which a run's numbers repeat to the last bit."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch


@contextlib.contextmanager
def deterministic(device: torch.device) -> Iterator[None]:
    """One thread on the CPU, denormals flushed to zero, plain float32 convolutions; the settings are put back after.

    One thread, because sums split over threads depend on their number; and two processes of one thread each are
    faster than one process of two. Denormals, because Adadelta's decaying accumulators fill with them, and a CPU
    takes far longer over one. On a GPU, cuDNN is held to deterministic algorithms without TF32.
    """
    threads = torch.get_num_threads()
    if device.type == "cpu":
        torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    try:
        with torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True, allow_tf32=False):
            yield
    finally:
        torch.set_flush_denormal(False)
        torch.set_num_threads(threads)
