"""What all tests share: where real data are, and how hypothesis draws."""

from __future__ import annotations

import os
from pathlib import Path

import hypothesis

ROOT = Path(__file__).parent.parent


def pytest_configure() -> None:
    # Real data are never part of the project; a test that needs them skips where they are not.
    beside = ROOT.parent / "shared" / "data"
    if beside.is_dir():
        os.environ.setdefault("MSDA_BENCH_DATA", str(beside))
    # No deadlines, since machines differ; in CI the same examples every time, so that a failure is the change's own.
    hypothesis.settings.register_profile("here", deadline=None)
    hypothesis.settings.register_profile("ci", deadline=None, derandomize=True)
    hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "here")
