"""The most memory that an action takes beyond what was held before it."""

from __future__ import annotations

import contextlib
import ctypes
import gc
from collections.abc import Callable
from pathlib import Path

import torch

from benchmarks.resident import highest_resident, resident_now

RESET = Path("/proc/self/clear_refs")
"""Written to, Linux begins anew to note the peak. The peak of getrusage cannot be reset, and a new process starts with
its parent's."""
_RESET_PEAK = "5"
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""glibc's constants for mallopt."""
_KEEP = 1 << 30


def keep_freed_memory() -> None:
    """Does for this process what its environment does for a worker, see `msda_bench.processes.KEPT_MEMORY`."""
    with contextlib.suppress(OSError, AttributeError):  # without glibc nothing is done
        libc = ctypes.CDLL(None)
        libc.mallopt(_MMAP_THRESHOLD, _KEEP)
        libc.mallopt(_TRIM_THRESHOLD, _KEEP)


def can_measure(device: str) -> bool:
    """Whether this system reports it."""
    return device != "cpu" or RESET.exists()


def peak_memory(action: Callable[[], object], device: str) -> float:
    """Bytes: of resident memory, or on a GPU of what torch allocated there."""
    gc.collect()
    if device != "cpu":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        action()
        return float(torch.cuda.max_memory_allocated() - before)
    with contextlib.suppress(OSError, AttributeError):  # elsewhere than on glibc freed memory may count as held
        ctypes.CDLL(None).malloc_trim(0)
    RESET.write_text(_RESET_PEAK)
    before = resident_now()
    action()
    return highest_resident() - before
