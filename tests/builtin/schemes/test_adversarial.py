"""MDD and CDAN agree with their papers' formulae, one example at a time."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from msda_bench.api import PluginError
from msda_bench_builtin.discrepancies import Coral, ProxyADistance
from msda_bench_builtin.schemes import Cdan, Mdd
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


def test_a_ramp_in_steps_is_its_authors() -> None:
    """tanh(step / 2000), whatever the share of training done."""
    run, same = SmallRun(Mdd(ramp_steps=2000)), SmallRun(Mdd(ramp=2.0))
    stage = run.scheme.stages[0]
    run.enter(stage)
    for step in range(3):
        taken = run.step(stage.phases[0])
        same.batch = same.batch._replace(progress=torch.tensor(step / 2000))
        trained = zip(run.trained(stage.phases[0]), same.trained(stage.phases[0]), strict=True)
        expected = torch.autograd.grad(same.step(stage.phases[0]).objective, same.trained(stage.phases[0]))
        mine = torch.autograd.grad(taken.objective, [value for value, _ in trained])
        assert all(torch.allclose(*pair) for pair in zip(mine, expected, strict=True))
        assert taken.carried["step"].item() == step + 1
        run.batch = run.batch._replace(carried=taken.carried)


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


def products(run: SmallRun, i: int) -> torch.Tensor:
    """All products of an example's features and probabilities, one at a time."""
    features = run.domain(i)
    probabilities = torch.softmax(run.modules["predictor"](features), 1)
    rows = [[f * p for f in fs for p in ps] for fs, ps in zip(features, probabilities, strict=True)]
    return torch.stack([torch.stack(row) for row in rows])


@pytest.mark.parametrize("discrepancy", [Coral(), ProxyADistance(hidden=(4,))])
def test_gaps_use_all_products(discrepancy: Any) -> None:
    run = SmallRun(Cdan(sources="apart", predictions="trained", ramp=None), discrepancy)
    taken = run.step(run.scheme.stages[0].phases[0])
    joint = torch.stack([products(run, i) for i in range(4)])
    gaps = run.modules["critic"].discrepancy(joint[:3], joint[3])
    risks = [run.risk(i) for i in range(3)]
    assert torch.allclose(taken.gaps, gaps)
    assert taken.risks.tolist() == pytest.approx([risk.item() for risk in risks])
    expected = sum(risks) / 3 + run.mu * gaps.mean()
    same_gradient(taken.objective, expected, run.modules.parameters())


@pytest.mark.parametrize(("ramp", "progress"), [(None, 0.3), (10.0, 0.3), (10.0, 0.0)])
@pytest.mark.parametrize("entropy", [False, True])
def test_by_default_it_is_the_authors_loss_of_pooled_sources(
    *, entropy: bool, ramp: float | None, progress: float
) -> None:
    """At mu 0.5, one critic's BCE over both batches, sum w BCE / sum w, with w scaled to add up to 1 in each.

    The target's batch is half of the pool's, and counts as much. The network gets (1 - e^-10t) / (1 + e^-10t) of the
    game's gradient, the critic all of it, and the predictor of losses without weights the risk's alone.
    """
    scheme = Cdan(entropy=entropy, ramp=ramp)
    assert scheme.groups(("a", "b", "c"), "t") == (("a", "b", "c"),)
    run = SmallRun(scheme, ProxyADistance(hidden=(6, 6)), k=1, mu=0.5)
    run.batch = run.batch._replace(x=run.x[:6], progress=torch.tensor(progress))
    taken = run.step(scheme.stages[0].phases[0])
    features = run.modules["features"](run.x[[0, 1, 2, 3, 4, 5, 4, 5]])
    p = torch.softmax(run.modules["predictor"](features), 1)
    joint = torch.bmm(p.detach().unsqueeze(2), features.unsqueeze(1)).transpose(1, 2).flatten(1)
    answers = torch.sigmoid(run.modules["critic"].discrepancy.critics(joint[None])).view(8)
    losses = nn.functional.binary_cross_entropy(answers, torch.tensor([1.0] * 4 + [0.0] * 4).double(), reduction="none")
    sure = 1 + torch.exp((p * p.log()).sum(1)) if entropy else torch.ones(8).double()
    weights = torch.cat([part / part.sum().detach() for part in (sure[:4], sure[4:])])
    game = (weights * losses).sum() / weights.sum().detach()
    assert taken.gaps.item() == pytest.approx(2 - 2 * game.item(), rel=1e-12)
    same_gradient(taken.objective, game, run.modules["critic"].parameters(), atol=1e-14)
    share = 1.0 if ramp is None else (1 - math.exp(-ramp * progress)) / (1 + math.exp(-ramp * progress))
    network = [*run.modules["features"].parameters(), *run.modules["predictor"].parameters()]
    same_gradient(taken.objective, run.risk(0) - share * game, network, atol=1e-14)


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
