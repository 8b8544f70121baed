"""Distributions written to disk as pip would install them."""

from __future__ import annotations

import importlib.metadata
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from msda_bench.plugins import Registry, discover

Install = Callable[..., None]
Found = Callable[[], Registry]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the import path that distributions are installed into; what it brought is forgotten afterwards."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    before = set(sys.modules)
    yield folder
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(folder)):
            del sys.modules[name]


@pytest.fixture
def install(site: Path) -> Install:
    """Installs a distribution of one module: its name, its code, and where they differ its entry point and version."""

    def run(distribution: str, code: str, *, entry: str = "plugin", version: str = "1.0") -> None:
        module = distribution.replace("-", "_")
        (site / f"{module}.py").write_text(textwrap.dedent(code))
        info = site / f"{module}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
        (info / "entry_points.txt").write_text(f"[msda_bench]\n{entry} = {module}\n")

    return run


@pytest.fixture
def found(site: Path) -> Found:
    """What is discovered of the distributions on disk, and of no other."""

    def run() -> Registry:
        distributions = importlib.metadata.distributions(path=[str(site)])
        return discover([point for dist in distributions for point in dist.entry_points])

    return run
