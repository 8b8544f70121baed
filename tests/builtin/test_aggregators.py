"""The aggregators against their formulae."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from msda_bench.functional import sharpmax
from msda_bench_builtin.aggregators import Hardmax, LogSumExp, Sharpmax, Uniform

terms = st.lists(st.floats(-5, 5), min_size=1, max_size=12)
EMPTY = torch.zeros(0)


@settings(max_examples=200, deadline=None)
@given(terms, st.floats(0.01, 20), st.floats(0, 3))
def test_sharpmax_envelope_gradient_is_that_of_full_autograd(values: list[float], gamma: float, mu: float) -> None:
    risks = torch.tensor(values, dtype=torch.float64, requires_grad=True)
    gaps = (torch.tensor(values, dtype=torch.float64) ** 2).requires_grad_()
    fast = torch.autograd.grad(Sharpmax(gamma=gamma)(risks, gaps, mu, EMPTY).objective, (risks, gaps))
    g = risks + mu * gaps
    alpha = sharpmax(-gamma * g)
    full = torch.autograd.grad(alpha @ g + torch.linalg.vector_norm(alpha) / gamma, (risks, gaps))
    for one, other in zip(fast, full, strict=True):
        assert torch.allclose(one, other, atol=1e-7)


def test_sharpmax_prefers_the_best_source_and_mdan_the_worst() -> None:
    risks = torch.tensor([0.1, 0.5, 0.9])
    darn = Sharpmax(gamma=0.9)(risks, torch.zeros(3), 0.0, EMPTY)
    mdan = LogSumExp(gamma=10.0)(risks, torch.zeros(3), 0.0, EMPTY)
    assert darn.weights.argmax() == 0
    assert mdan.weights.argmax() == 2


def test_logsumexp_objective_and_gradient() -> None:
    g = torch.tensor([0.2, 0.7], dtype=torch.float64, requires_grad=True)
    found = LogSumExp(gamma=2.0)(g, torch.ones(2, dtype=torch.float64), 0.5, EMPTY)
    shifted = g.detach() + 0.5
    assert found.objective.item() == pytest.approx(((2 * shifted).exp().sum().log() / 2).item())
    (gradient,) = torch.autograd.grad(found.objective, g)
    assert torch.allclose(gradient, found.weights)
    assert torch.allclose(gradient, torch.softmax(2 * shifted, 0))


def test_hardmax_bound_takes_the_worst_term() -> None:
    risks, gaps = torch.tensor([1.0, 2.0, 0.0]), torch.tensor([5.0, 0.0, 1.0])
    found = Hardmax()(risks, gaps, 1.0, EMPTY)
    assert found.objective == 6
    assert found.weights.tolist() == [1, 0, 0]


def test_hardmax_code_takes_the_largest_risk_and_the_smallest_domain_loss() -> None:
    risks, gaps = torch.tensor([1.0, 2.0, 0.0]), torch.tensor([5.0, 3.0, 1.0])
    found = Hardmax(form="code")(risks, gaps, 0.5, EMPTY)
    assert found.objective == 2 + 0.5 * 1
    assert found.weights.tolist() == [0, 1, 0]


@pytest.mark.parametrize("form", ["bound", "code"])
def test_hardmax_ties_share(form: str) -> None:
    tied = torch.tensor([2.0, 2.0, 1.0])
    weights: Tensor = Hardmax(form=form)(tied, torch.zeros(3), 1.0, EMPTY).weights  # type: ignore[arg-type]
    assert weights.tolist() == [0.5, 0.5, 0]


def test_uniform_is_the_mean() -> None:
    found = Uniform()(torch.tensor([1.0, 3.0]), torch.tensor([0.0, 2.0]), 0.5, EMPTY)
    assert found.objective == 2.5
    assert found.weights.tolist() == [0.5, 0.5]
