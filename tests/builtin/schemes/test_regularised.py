"""The terms of MCC, BNM and entropy minimisation agree with their papers' formulae."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import softmax
from scipy.stats import entropy
from torch import Tensor

from msda_bench_builtin.discrepancies import Coral, NoDiscrepancy
from msda_bench_builtin.schemes import Adapt, Regularised
from tests.builtin.schemes.small_run import CLASSES, B, K, SmallRun

BY = ("mcc", "bnm", "entropy")


def target_outputs(run: SmallRun) -> Tensor:
    outputs: Tensor = run.modules["predictor"](run.domain(K))
    return outputs


def plain(by: str, outputs: np.ndarray, temperature: float) -> float:
    """The papers' values, element by element."""
    if by == "bnm":
        return -float(np.linalg.norm(softmax(outputs, axis=1), "nuc")) / len(outputs)
    if by == "entropy":
        return float(entropy(softmax(outputs, axis=1), axis=1).mean())
    y = softmax(outputs / temperature, axis=1)
    sure = 1 + np.exp(-entropy(y, axis=1))
    w = len(y) * sure / sure.sum()
    c = [[sum(w[i] * y[i, j] * y[i, m] for i in range(len(y))) for m in range(CLASSES)] for j in range(CLASSES)]
    return sum(c[j][m] / sum(c[j]) for j in range(CLASSES) for m in range(CLASSES) if m != j) / CLASSES


@pytest.mark.parametrize("temperature", [2.5, 1.0])
@pytest.mark.parametrize("by", BY)
def test_the_added_term_equals_the_papers(by: str, temperature: float) -> None:
    """The term is added to the aggregated objective."""
    run = SmallRun(Regularised(by=by, weight=0.7, temperature=temperature), Coral())  # type: ignore[arg-type]
    base = SmallRun(Adapt(), Coral()).step(run.scheme.stages[0].phases[0])
    taken = run.step(run.scheme.stages[0].phases[0])
    expected = plain(by, target_outputs(run).detach().numpy(), temperature)
    assert taken.objective.item() == pytest.approx(base.objective.item() + 0.7 * expected)
    assert taken.gaps.tolist() == base.gaps.tolist()


@pytest.mark.parametrize("by", BY)
def test_the_terms_gradient_equals_the_formulas(by: str) -> None:
    """Compares with differences of the formula above, with MCC's detached weights held fixed."""
    run = SmallRun(Regularised(by=by), NoDiscrepancy())  # type: ignore[arg-type]
    outputs = target_outputs(run).detach().requires_grad_()
    (found,) = torch.autograd.grad(run.scheme._of(outputs), outputs)  # type: ignore[attr-defined]
    y = torch.softmax(outputs.detach() / 2.5, 1)
    sure = 1 + torch.exp((y * y.log()).sum(1))

    def value(at: Tensor) -> float:
        if by != "mcc":
            return plain(by, at.numpy(), 2.5)
        p = torch.softmax(at / 2.5, 1)
        c = torch.einsum("ij,i,il->jl", p, B * sure / sure.sum(), p)
        return float(1 - (c.diagonal() / c.sum(1)).mean())

    for place in np.ndindex(B, CLASSES):
        step = torch.zeros(B, CLASSES, dtype=torch.float64)
        step[place] = 1e-5
        slope = (value(outputs.detach() + step) - value(outputs.detach() - step)) / 2e-5
        assert found[place].item() == pytest.approx(slope, abs=1e-8)


@pytest.mark.parametrize("by", BY)
def test_a_step_makes_target_predictions_more_certain(by: str) -> None:
    run = SmallRun(Regularised(by=by, weight=100.0), NoDiscrepancy())  # type: ignore[arg-type]
    before = plain(by, target_outputs(run).detach().numpy(), 2.5)
    run.descend(run.scheme.stages[0].phases[0], 1e-3)
    assert plain(by, target_outputs(run).detach().numpy(), 2.5) < before


def test_classes_that_are_never_predicted_keep_the_term_finite() -> None:
    """If all predictions are certain of one class, other rows of the confusion matrix are exactly zero."""
    outputs = torch.tensor([[2000.0, 0.0, 0.0]]).repeat(B, 1).requires_grad_()
    for by in BY:
        found = Regularised(by=by)._of(outputs)  # type: ignore[arg-type]
        (gradient,) = torch.autograd.grad(found, outputs)
        assert found.isfinite()
        assert gradient.isfinite().all()
