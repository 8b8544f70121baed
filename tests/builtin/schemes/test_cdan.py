"""CDAN's conditioning agrees with plain products."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import nn

from msda_bench.api import Network, PluginError
from msda_bench_builtin.discrepancies import Coral, NoDiscrepancy, ProxyADistance
from msda_bench_builtin.schemes import Adapt, Cdan
from tests.builtin.gradients import same_gradient
from tests.builtin.schemes.small_run import SmallRun


def products(run: SmallRun, i: int) -> torch.Tensor:
    """All products of an example's features and probabilities, one at a time."""
    features = run.domain(i)
    probabilities = torch.softmax(run.modules["predictor"](features), 1)
    rows = [[f * p for f in fs for p in ps] for fs, ps in zip(features, probabilities, strict=True)]
    return torch.stack([torch.stack(row) for row in rows])


@pytest.mark.parametrize("discrepancy", [Coral(), ProxyADistance(hidden=(4,))])
def test_gaps_use_all_products(discrepancy: Any) -> None:
    run = SmallRun(Cdan(ramp=None), discrepancy)
    taken = run.step(run.scheme.stages[0].phases[0])
    joint = torch.stack([products(run, i) for i in range(4)])
    gaps = run.modules["critic"].discrepancy(joint[:3], joint[3])
    risks = [run.risk(i) for i in range(3)]
    assert torch.allclose(taken.gaps, gaps)
    assert taken.risks.tolist() == pytest.approx([risk.item() for risk in risks])
    expected = sum(risks) / 3 + run.mu * gaps.mean()
    same_gradient(taken.objective, expected, run.modules.parameters())


def gradients(run: SmallRun, part: str) -> list[torch.Tensor]:
    objective = run.step(run.scheme.stages[0].phases[0]).objective
    return list(torch.autograd.grad(objective, list(run.modules[part].parameters()), materialize_grads=True))


def test_fixed_predictions_give_the_predictor_only_the_risks_gradient() -> None:
    fixed, free = (SmallRun(Cdan(predictions=how, ramp=None), ProxyADistance()) for how in ("fixed", "trained"))
    expected = gradients(SmallRun(Adapt(), NoDiscrepancy()), "predictor")
    for one, other in zip(gradients(fixed, "predictor"), expected, strict=True):
        assert torch.allclose(one, other)
    assert not torch.allclose(gradients(free, "predictor")[0], expected[0])


@pytest.mark.parametrize("progress", [0.0, 0.3])
def test_the_ramp_scales_the_networks_gradient_but_not_the_critics(progress: float) -> None:
    """Features get the risks' gradient plus (1 - e^-10t) / (1 + e^-10t) times the discrepancy's."""
    ramped, full = (SmallRun(Cdan(ramp=ramp), ProxyADistance()) for ramp in (10.0, None))
    plain = SmallRun(Adapt(), NoDiscrepancy())
    ramped.batch = ramped.batch._replace(progress=torch.tensor(progress))
    share = (1 - math.exp(-10 * progress)) / (1 + math.exp(-10 * progress))
    of_risks = gradients(plain, "features")
    expected = [risk + share * (all_ - risk) for risk, all_ in zip(of_risks, gradients(full, "features"), strict=True)]
    for one, other in zip(gradients(ramped, "features"), expected, strict=True):
        assert torch.allclose(one, other)
    for one, other in zip(gradients(ramped, "critic"), gradients(full, "critic"), strict=True):
        assert torch.allclose(one, other)


def test_certain_examples_weigh_more() -> None:
    """CDAN+E's loss, and its gradient, from the formula: each domain's losses by 1 + e^-H over their constant sum."""
    run = SmallRun(Cdan(entropy=True, predictions="fixed", ramp=None), ProxyADistance(sign="code"))
    taken = run.step(run.scheme.stages[0].phases[0])
    losses = []
    for i in range(4):
        outputs = run.modules["predictor"](run.domain(i))
        p = torch.softmax(outputs, 1)
        weights = 1 + (p * p.log()).sum(1).exp()
        joint = torch.einsum("bf,bc->bfc", run.domain(i), p.detach()).flatten(1)
        critics = run.modules["critic"].discrepancy.critics
        logits = critics(joint.expand(3, -1, -1)).squeeze(-1)
        losses.append(nn.functional.softplus(logits if i == 3 else -logits) @ weights / weights.sum().detach())
    loss = torch.stack([losses[i][i] + losses[3][i] for i in range(3)])
    assert torch.allclose(taken.gaps, loss)
    # The network climbs what the critics descend.
    same_gradient(taken.objective - taken.risks.mean(), -run.mu * loss.mean(), run.modules["features"].parameters())


def test_discrepancies_without_example_weights_are_refused() -> None:
    with pytest.raises(PluginError, match="'coral' takes no weights of examples; use d_A, or set entropy: false"):
        SmallRun(Cdan(entropy=True), Coral())


def test_many_products_are_sketched_at_random() -> None:
    """Inner products are unbiased: E <T(a), T(b)> = <f_a, f_b> <p_a, p_b>."""
    run = SmallRun(Cdan(limit=14, random=40000), Coral())
    critic = run.modules["critic"]
    features = run.domain(0)
    probabilities = torch.softmax(run.modules["predictor"](features), 1)
    joint = critic._join(features, probabilities)
    assert joint.shape == (4, 40000)
    expected = (features @ features.T) * (probabilities @ probabilities.T)
    assert torch.allclose(joint @ joint.T, expected, atol=0.05 * expected.abs().max().item())
    assert SmallRun(Cdan(limit=15), Coral()).modules["critic"].on_features is None


def test_build_does_not_change_the_predictor() -> None:
    predictor = nn.Sequential(nn.BatchNorm1d(5), nn.Linear(5, 2))
    before = {name: value.clone() for name, value in predictor.state_dict().items()}
    Cdan().build(Network(nn.Identity(), predictor, 5), 2, Coral())
    assert predictor.training
    assert all(torch.equal(value, before[name]) for name, value in predictor.state_dict().items())
