"""Commands that read many records and end."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """No search for cycles meanwhile, which among millions of new objects takes as long as the work itself.

    For commands that read result folders: records hold no cycles, and what does, such as a figure, is small and soon
    gone with the process.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
