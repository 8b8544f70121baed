"""Curves: means over an epoch, and weights averaged over all steps."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from msda_bench.engine.fit import Trace


def step(risk: float, gap: float, weight: float) -> Tensor:
    return torch.tensor([[risk, 2 * risk], [gap, 2 * gap], [weight, 1 - weight]], dtype=torch.float64)


def test_curves_hold_epoch_means_and_a_moving_average() -> None:
    trace = Trace((("a",), ("b",)))
    weights = [0.1, 0.5, 0.9, 0.2, 0.3, 0.4]
    expected = weights[0]
    for weight in weights:
        expected = 0.9 * expected + 0.1 * weight
    for epoch in (0, 1):
        steps = [step(place, 10 * place, weights[3 * epoch + place]) for place in range(3)]
        assert trace.close_epoch(torch.stack(steps))
    assert trace.curves.groups == [["a"], ["b"]]
    assert trace.curves.risks == [[1, 2], [1, 2]]
    assert trace.curves.gaps == [[10, 20], [10, 20]]
    assert trace.curves.weights[1] == pytest.approx([expected, 1 - expected], rel=1e-5)
    assert trace.weights.tolist() == pytest.approx([expected, 1 - expected])


def test_an_epoch_with_a_nan_is_not_kept() -> None:
    trace = Trace((("a",), ("b",)))
    assert not trace.close_epoch(torch.stack([step(1, 1, 0.5), step(float("nan"), 1, 0.5)]))
    assert trace.curves.risks == []
    with pytest.raises(ValueError, match="no epoch"):
        _ = trace.weights
