"""Curves: means over an epoch, and weights averaged over all steps."""

from __future__ import annotations

import pytest
import torch

from msda_bench.api import Step
from msda_bench.engine.trace import Trace


def taken(risk: float, gap: float, weight: float) -> Step:
    pair = torch.tensor([1.0, 2.0])
    return Step(torch.tensor(0.0), pair * risk, pair * gap, torch.tensor([weight, 1 - weight]), torch.zeros(0))


def test_means_and_the_moving_average() -> None:
    trace = Trace((("a",), ("b",)), 3, torch.device("cpu"))
    weights = [0.1, 0.5, 0.9, 0.2, 0.3, 0.4]
    expected = None
    for epoch in (0, 1):
        for step in range(3):
            weight = weights[3 * epoch + step]
            expected = weight if expected is None else 0.9 * expected + 0.1 * weight
            trace.add(step, taken(step, 10 * step, weight))
        assert trace.close_epoch()
    assert trace.curves.groups == [["a"], ["b"]]
    assert trace.curves.risks == [[1, 2], [1, 2]]
    assert trace.curves.gaps == [[10, 20], [10, 20]]
    assert trace.curves.weights[1] == pytest.approx([expected, 1 - expected], rel=1e-5)
    assert trace.weights.tolist() == pytest.approx([expected, 1 - expected])


def test_an_epoch_with_a_nan_is_not_kept() -> None:
    trace = Trace((("a",), ("b",)), 2, torch.device("cpu"))
    trace.add(0, taken(1, 1, 0.5))
    trace.add(1, taken(float("nan"), 1, 0.5))
    assert not trace.close_epoch()
    assert trace.curves.risks == []
    with pytest.raises(ValueError, match="no epoch"):
        _ = trace.weights
