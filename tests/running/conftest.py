"""Makes the fake training core importable, here and in every process that a test starts."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

PROCESSES = Path(__file__).parent / "processes"
sys.path.insert(0, str(PROCESSES))  # before test modules are imported; worker processes inherit it

import fake_training  # noqa: E402

from msda_bench.store import Store  # noqa: E402


@pytest.fixture(autouse=True)
def fake_core(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (str(PROCESSES), os.environ.get("PYTHONPATH")))))
    monkeypatch.setenv(fake_training.LOG, str(tmp_path / "trained.log"))
    monkeypatch.setattr(Store, "publish", fake_training.publish)
