"""The user's cache folder: data that were fetched, arrays made from them, and what takes long to make."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

import platformdirs

CACHE = "MSDA_BENCH_CACHE"
REMEDY = f"free space, or set {CACHE} to another folder"
"""What to do where the cache cannot be written."""


def cache_folder(environ: Mapping[str, str] | None = None) -> Path:
    """The folder that MSDA_BENCH_CACHE names, or else the user's own; it need not exist yet."""
    named = (os.environ if environ is None else environ).get(CACHE)
    folder = Path(named or platformdirs.user_cache_dir("msda-bench", appauthor=False))
    with contextlib.suppress(RuntimeError):  # `~name` of no user is a folder of that name, as in a shell
        folder = folder.expanduser()
    return folder.absolute()
