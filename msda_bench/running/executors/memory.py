"""How a worker's memory is kept between steps."""

from __future__ import annotations

import contextlib
import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""glibc's numbers for mallopt."""
_KEEP = 1 << 30


def keep_freed_memory() -> None:
    """Tells glibc to reuse freed memory rather than to give it back and map it anew.

    A training step frees and asks for the same large arrays every time; each fresh mapping is zeroed page by page,
    which took a third of a convolutional step. Elsewhere than on glibc nothing happens.
    """
    with contextlib.suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None)
        libc.mallopt(_MMAP_THRESHOLD, _KEEP)
        libc.mallopt(_TRIM_THRESHOLD, _KEEP)
