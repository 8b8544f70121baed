"""Whether a process elsewhere sees the very result folder that this one writes to."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from msda_bench.errors import StoreError
from msda_bench.store.files import named, temporary

_TRIES = 10
_PAUSE = 0.5


@contextlib.contextmanager
def token_in(folder: Path) -> Iterator[Path]:
    """A file in the folder for the time of the block, with a name that no other folder holds.

    Raises:
        StoreError: it cannot be written.
    """
    token = temporary(folder / "token")
    with named(folder, "cannot be written"):
        token.touch(exist_ok=False)
    try:
        yield token
    finally:
        with contextlib.suppress(OSError):  # what cannot be removed now `store verify` removes later
            token.unlink()


def must_see(token: Path, who: str) -> None:
    """Checks that this process, called `who`, sees the folder that the token is in.

    A network file system may show a new file some seconds late.

    Raises:
        StoreError: it does not.
    """
    for _ in range(_TRIES):
        if os.path.isfile(token):  # noqa: PTH113 - answers no, too, where the path may not be looked at
            return
        time.sleep(_PAUSE)
    raise StoreError(f"{token.parent}: {who} does not see this folder; let --out be one that all workers share")
