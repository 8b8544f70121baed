"""Aggregators with state: GroupDRO, and weights by size."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from msda_bench_builtin.aggregators import GroupDro, Size

losses = st.lists(st.lists(st.floats(0, 5), min_size=3, max_size=3), min_size=1, max_size=6)


@settings(max_examples=50, deadline=None)
@given(losses, st.floats(0.001, 2))
def test_group_dro_equals_its_recursion(steps: list[list[float]], eta: float) -> None:
    aggregator = GroupDro(eta=eta)
    state = aggregator.start(torch.ones(3)).double()
    q = torch.full((3,), 1 / 3, dtype=torch.float64)
    for step in steps:
        risks = torch.tensor(step, dtype=torch.float64, requires_grad=True)
        gaps = risks.detach().flip(0)
        objective, weights, state = aggregator(risks, gaps, 0.5, state)
        g = risks.detach() + 0.5 * gaps
        q = q * torch.exp(eta * g)
        q = q / q.sum()
        assert torch.allclose(weights, q, atol=1e-6)
        assert objective.item() == pytest.approx((q @ g).item(), abs=1e-6)
        assert torch.equal(torch.autograd.grad(objective, risks)[0], weights)


def test_group_dro_ends_with_the_worst_source_and_survives_infinity() -> None:
    aggregator = GroupDro(eta=0.1)
    state = aggregator.start(torch.ones(3))
    for _ in range(300):
        weights, state = aggregator(torch.tensor([0.2, 0.9, 0.5]), torch.zeros(3), 0.0, state)[1:]
    assert weights[1] > 0.999
    _, weights, state = aggregator(torch.tensor([0.2, 0.9, torch.inf]), torch.zeros(3), 0.0, state)
    assert weights.tolist() == [0, 0, 1]
    assert not state.isnan().any()


def test_by_default_group_dro_hardly_moves_in_150_steps_as_its_page_warns() -> None:
    aggregator, risks = GroupDro(), torch.tensor([0.3, 0.2])
    state = aggregator.start(torch.ones(2))
    for _ in range(150):
        weights, state = aggregator(risks, torch.zeros(2), 0.0, state)[1:]
    assert (weights[0] / weights[1]).log().item() == pytest.approx(0.15, abs=1e-4)


def test_size_is_the_mean_over_all_examples() -> None:
    aggregator = Size()
    state = aggregator.start(torch.tensor([100.0, 300.0]))
    found = aggregator(torch.tensor([1.0, 2.0]), torch.tensor([0.0, 4.0]), 0.5, state)
    assert found.weights.tolist() == [0.25, 0.75]
    assert found.objective.item() == pytest.approx(0.25 * 1 + 0.75 * 4)
    assert torch.equal(found.state, state)
    assert aggregator.start(torch.full((5,), 70.0)).tolist() == pytest.approx([0.2] * 5)
