"""The user's cache folder: data that were fetched, arrays made from them, and what takes long to make."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import platformdirs

CACHE = "MSDA_BENCH_CACHE"


def cache_folder(environ: Mapping[str, str] | None = None) -> Path:
    """The folder that MSDA_BENCH_CACHE names, or else the user's own; it need not exist yet."""
    named = (os.environ if environ is None else environ).get(CACHE)
    return Path(named or platformdirs.user_cache_dir("msda-bench", appauthor=False)).expanduser().absolute()
