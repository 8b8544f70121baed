"""MDD agrees with the paper's formula, one example at a time."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from msda_bench_builtin.schemes import Mdd
from tests.builtin.gradients import same_gradient
from tests.builtin.schemes.small_run import CLASSES, B, K, SmallRun


def plain_gap(run: SmallRun, i: int, margin: float) -> Tensor:
    """margin E_source log sigma_h(f') + E_target log (1 - sigma_h(f')), with sigma the softmax."""
    total = torch.zeros((), dtype=torch.float64)
    for domain, weight in ((i, margin), (K, 1.0)):
        for feature in run.domain(domain):
            h = int(run.modules["predictor"](feature).argmax())
            scores = run.modules["critic"][i](feature).exp()
            sigma = scores[h] / scores.sum()
            total = total + weight * torch.log(sigma if domain == i else 1 - sigma) / B
    return total


@pytest.mark.parametrize("margin", [4.0, 2.0])
@pytest.mark.parametrize(("ramp", "progress"), [(None, 0.2), (10.0, 0.2), (10.0, 0.0)])
def test_classifiers_and_network_play_the_papers_game(margin: float, ramp: float | None, progress: float) -> None:
    """Adversarial classifiers maximise their gaps; the network minimises the risks plus mu ramp times the mean gap."""
    run = SmallRun(Mdd(margin=margin, ramp=ramp), mu=0.3)
    run.batch = run.batch._replace(progress=torch.tensor(progress))
    taken = run.step(run.scheme.stages[0].phases[0])
    gaps = torch.stack([plain_gap(run, i, margin) for i in range(K)])
    best = margin * math.log(margin / (margin + 1)) + math.log(1 / (margin + 1))
    risks = torch.stack([run.risk(i) for i in range(K)])
    assert torch.allclose(taken.gaps, gaps - best)
    assert torch.allclose(taken.risks, risks)
    assert taken.weights.tolist() == [1 / K] * K
    share = 1.0 if ramp is None else (1 - math.exp(-ramp * progress)) / (1 + math.exp(-ramp * progress))
    network = [*run.modules["features"].parameters(), *run.modules["predictor"].parameters()]
    same_gradient(taken.objective, risks.mean() + 0.3 * share * gaps.mean(), network)
    same_gradient(taken.objective, -gaps.sum(), run.modules["critic"].parameters())


def test_the_best_classifier_of_two_equal_domains_has_no_gap() -> None:
    """p_h = margin / (margin + 1) on all examples, as the classifiers' bias gives it; a sure one has a large loss."""
    run = SmallRun(Mdd(), k=1)
    run.batch = run.batch._replace(x=run.x[:B].repeat(2, 1))
    with torch.no_grad():
        run.modules["predictor"].bias += torch.tensor([50.0, 0.0, 0.0])  # h is always the first class
        head = run.modules["critic"][0]
        head.weight.zero_()
        head.bias.copy_(torch.tensor([math.log(4 * (CLASSES - 1)), 0.0, 0.0]))
        assert run.step(run.scheme.stages[0].phases[0]).gaps.tolist() == pytest.approx([0.0])
        head.bias.copy_(torch.tensor([60.0, 0.0, 0.0]))  # 1 - p_h is less than the rounding of p_h
        gaps = run.step(run.scheme.stages[0].phases[0]).gaps.tolist()
        assert gaps == pytest.approx([2.5020 - 60 + math.log(2)], abs=1e-3)
