"""The script that trains on a device simulated by torch."""

from __future__ import annotations

import pytest
import torch

from benchmarks.simulated import NOT_BUILT, lines, outcome
from benchmarks.steps import field_cells, small
from benchmarks.workload import make_registry


def test_without_a_cuda_build_the_script_names_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch.backends.cuda, "is_built", lambda: False)
    assert lines("cuda") == [NOT_BUILT]
    assert capsys.readouterr().out == f"{NOT_BUILT}\n"


def test_methods_train_on_a_simulated_device(capsys: pytest.CaptureFixture[str]) -> None:
    found = lines("cpu", ["DARN", "SHOT"])
    assert len(found) == 2 * 4 + 1
    assert found[-1] == "8 of 8 pass on a simulated device of type cpu"


def test_a_failure_shows_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = make_registry()
    cell = small(registry, field_cells(registry)["DARN"], "vectors")
    with monkeypatch.context() as patch:
        patch.setattr("msda_bench.engine.optim.PhaseOptimizers.__init__", lambda *_: torch.ones(2).nonzero())
        assert outcome(registry, cell, "cpu", 0).startswith("forward fails: ")
    monkeypatch.setattr("msda_bench.engine.optim.PhaseOptimizers.step", lambda *_: torch.ones(2).nonzero())
    assert outcome(registry, cell, "cpu", 0).startswith("forward passes, step fails: DynamicOutputShapeException")
