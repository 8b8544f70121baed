"""Disables garbage collection in commands that read many records and then end."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Disables the search for cycles within the block; among millions of new objects it takes as long as the work.

    This suits commands that read result folders. Records have no cycles. Objects that do, such as figures, are few, and
    the process soon ends.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
