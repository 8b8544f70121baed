"""Schemes of gaps, adversaries and added terms agree with plain loops and their papers' formulae."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import softmax
from scipy.stats import entropy
from torch import Tensor, nn

from msda_bench.api import PluginError
from msda_bench.functional import uniform
from msda_bench_builtin.aggregators import GroupDro
from msda_bench_builtin.discrepancies import Coral, Mmd, NoDiscrepancy, ProxyADistance
from msda_bench_builtin.schemes import Adapt, Alternate, Cdan, Mdd, Mdmn, Pooled, Regularised
from tests.builtin.formulas import CLASSES, B, K, SmallRun, same_gradient


def test_groups_and_steps_are_as_documented() -> None:
    sources = ("a", "b", "c")
    assert Adapt().groups(sources, "t") == (("a",), ("b",), ("c",))
    assert Pooled().groups(sources, "t") == (("a", "b", "c"),)
    assert Adapt().steps(((2000,), (1990,)), 20) == 100
    assert Pooled().steps(((2000, 2000, 2000),), 20) == 300
    assert Pooled(epoch="domain").steps(((2000, 2000, 2000),), 20) == 100
    assert Adapt().steps(((5,),), 20) == 1


def test_adapt_aggregates_risks_and_gaps_of_one_pass() -> None:
    run = SmallRun(Adapt(), Coral())
    taken = run.step(run.scheme.stages[0].phases[0])
    gaps = Coral().build(5, K)(torch.stack([run.domain(i) for i in range(K)]), run.domain(K))
    assert taken.risks.tolist() == pytest.approx([run.risk(i).item() for i in range(K)])
    assert torch.allclose(taken.gaps, gaps)
    assert taken.objective.item() == pytest.approx((taken.risks.mean() + run.mu * gaps.mean()).item())


@pytest.mark.parametrize(("ramp", "share"), [(None, 1.0), (10.0, math.tanh(5 * 0.2))])
@pytest.mark.parametrize("mu", [0.0, 0.3])
def test_critics_learn_at_the_full_rate_while_mu_and_the_ramp_weigh_the_features(ramp, share, mu) -> None:
    """The authors' gradient reversal with a coefficient; `weigh: gap` multiplies the critics' gradient by mu, too."""
    run, usual = (
        SmallRun(Adapt(weigh=weigh, ramp=grows), ProxyADistance(hidden=(4,)), mu=mu)
        for weigh, grows in (("features", ramp), ("gap", None))
    )
    for each in (run, usual):
        each.batch = each.batch._replace(progress=torch.tensor(0.2))
    phase = run.scheme.stages[0].phases[0]
    taken, before = run.step(phase), usual.step(phase)
    assert taken.objective.item() == pytest.approx(before.objective.item())
    assert torch.allclose(taken.gaps, before.gaps)
    network = [*run.modules["features"].parameters(), *run.modules["predictor"].parameters()]
    domains = torch.stack([run.domain(i) for i in range(K)]), run.domain(K)
    gaps = run.modules["critic"](*domains)
    same_gradient(taken.objective, taken.risks.mean() + mu * share * gaps.mean(), network)
    if mu:
        same_gradient(taken.objective, gaps.mean(), run.modules["critic"].parameters())
    rising = SmallRun(Adapt(ramp=ramp), ProxyADistance(hidden=(4,)), mu=mu)
    rising.batch = run.batch
    theirs = rising.modules["critic"](torch.stack([rising.domain(i) for i in range(K)]), rising.domain(K))
    same_gradient(rising.step(phase).objective, mu * theirs.mean(), rising.modules["critic"].parameters())


def plain_mdmn(run: SmallRun, penalty: float) -> tuple[Tensor, Tensor, Tensor]:
    """As PROTOCOL describes it, one pair and one sample at a time."""
    critic = run.modules["critic"]
    domains = [run.domain(s) for s in range(K + 1)]
    with torch.no_grad():
        m = [[critic(domains[s])[:, i].mean() for i in range(K + 1)] for s in range(K + 1)]
        w = [[torch.sigmoid(m[s][i] - m[i][i]) if s != i else 1.0 for i in range(K + 1)] for s in range(K + 1)]
        spread = torch.stack([sum(w[s][i] * m[s][i] for s in range(K + 1) if s != i) - m[i][i] for i in range(K + 1)])
        beta = [*torch.softmax(spread[:K], 0), torch.tensor(1.0)]
    total, count = torch.zeros((), dtype=torch.float64), 0
    for s in range(K + 1):
        for x in domains[s]:
            outputs = critic(2 * x.detach() - x)
            for i in range(K + 1):
                c = w[s][i] / B if s != i else -1.0 / B
                total = total + beta[i] * c * outputs[i]
                count += 1
    draws = uniform(run.batch.key, (2,))
    chosen = domains[int(draws[0] * K)]
    between = (draws[1] * chosen + (1 - draws[1]) * domains[K]).detach().requires_grad_()
    (gradient,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
    loss = total / count + penalty * ((gradient.norm(dim=1) - 1) ** 2).mean()
    risks = torch.stack([run.risk(i) for i in range(K)])
    return risks.mean() + run.mu * loss, spread[:K], torch.stack(beta[:K])


@pytest.mark.parametrize("hidden", [(), (4,)])
def test_mdmn_equals_plain_loops(hidden: tuple[int, ...]) -> None:
    scheme = Mdmn(hidden=hidden)
    run = SmallRun(scheme, mu=0.5)
    taken = run.step(scheme.stages[0].phases[0])
    objective, spread, beta = plain_mdmn(run, scheme.penalty)
    assert taken.objective.item() == pytest.approx(objective.item())
    assert torch.allclose(taken.gaps, spread)
    assert torch.allclose(taken.weights, beta)
    learned = [*run.modules["features"].parameters(), *run.modules["critic"].parameters()]
    same_gradient(taken.objective, objective, learned, atol=1e-12)


def test_the_critics_phase_trains_only_the_critics() -> None:
    run = SmallRun(Alternate(), ProxyADistance(), GroupDro())
    critic, network = run.scheme.stages[0].phases[0], run.scheme.stages[0].phases[-1]
    assert [phase.name for phase in run.scheme.stages[0].phases] == ["critic"] * 5 + ["network"]
    assert critic.trains == ("critic",)
    assert set(network.trains) == {"features", "predictor"}
    taken = run.step(critic)
    assert torch.equal(taken.state, run.state)
    gaps = run.modules["critic"](torch.stack([run.domain(i) for i in range(3)]).detach(), run.domain(3).detach())
    same_gradient(taken.objective, gaps.sum(), run.modules.parameters())


def test_the_networks_phase_equals_the_step_of_adapt() -> None:
    one, other = (SmallRun(scheme, ProxyADistance(), GroupDro()) for scheme in (Alternate(), Adapt()))
    taken, expected = one.step(one.scheme.stages[0].phases[-1]), other.step(other.scheme.stages[0].phases[0])
    for mine, theirs in zip(taken[:5], expected[:5], strict=True):
        assert torch.equal(mine, theirs)
    assert not torch.equal(taken.state, one.state)


def test_a_discrepancy_without_a_critic_is_named() -> None:
    with pytest.raises(PluginError, match="discrepancy 'mmd' has none; use scheme 'adapt'"):
        SmallRun(Alternate(), Mmd())


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


def test_classes_that_are_never_predicted_keep_the_term_finite() -> None:
    """If all predictions are certain of one class, other rows of the confusion matrix are exactly zero."""
    outputs = torch.tensor([[2000.0, 0.0, 0.0]]).repeat(B, 1).requires_grad_()
    for by in BY:
        found = Regularised(by=by)._of(outputs)  # type: ignore[arg-type]
        (gradient,) = torch.autograd.grad(found, outputs)
        assert found.isfinite()
        assert gradient.isfinite().all()


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
