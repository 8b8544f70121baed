"""Disables garbage collection in commands that read many records and end."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """No search for cycles within the block, which among millions of new objects takes as long as the work itself.

    For commands that read result folders: records have no cycles, and objects that have them, such as figures, are few
    and soon end with the process.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
