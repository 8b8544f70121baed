"""Discovery of distributions on disk."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable
from pathlib import Path

import pytest

from msda_bench.plugins import Registry, discover


@pytest.fixture
def discovered(site: Path) -> Callable[[], Registry]:
    """The registry of the distributions in the test's folder only."""

    def run() -> Registry:
        distributions = importlib.metadata.distributions(path=[str(site)])
        return discover([point for dist in distributions for point in dist.entry_points])

    return run
