"""The project's own suites, loaded with the installed components."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msda_bench.plugins import Registry, discover
from msda_bench.suite.expand import Expansion, expand
from msda_bench.suite.load import load_suite

SUITES = Path(__file__).parents[2] / "suites"


def loaded(name: str | Path, registry: Registry | None = None) -> tuple[Any, Expansion]:
    """A suite, by path or by name below suites/, and its expansion."""
    found = registry or discover()
    suite = load_suite(SUITES / f"{name}.yaml" if isinstance(name, str) else name, found)
    return suite, expand(suite, found)
