"""Schemes of gaps, adversaries and added terms agree with plain loops and their papers' formulae."""

import math
from itertools import permutations

import pytest
import torch
from torch import nn

from msda_bench.api import PluginError
from msda_bench.functional import uniform
from msda_bench_builtin.aggregators import GroupDro
from msda_bench_builtin.discrepancies import Coral, Mmd, NoDiscrepancy, ProxyADistance
from msda_bench_builtin.schemes import Adapt, Alternate, Cdan, Mdd, Mdmn, Pooled, Regularised
from tests.builtin.formulas import CLASSES, B, K, SmallRun, same_gradient, takes

pytestmark = pytest.mark.usefixtures("double")


def test_groups_and_steps_are_as_documented():
    sources, sizes = ("a", "b", "c"), ((2000, 2000, 2000),)
    assert Adapt().groups(sources, "t") == (("a",), ("b",), ("c",))
    assert Pooled().groups(sources, "t") == Cdan().groups(sources, "t") == (sources,)
    assert [Adapt().steps(given, 20) for given in (((2000,), (1990,)), ((5,),))] == [100, 1]
    assert [scheme.steps(sizes, 20) for scheme in (Pooled(), Pooled(epoch="domain"))] == [300, 100]


@pytest.mark.parametrize("weigh", ["gap", "features"])
@pytest.mark.parametrize(("ramp", "share"), [(None, 1.0), (10.0, math.tanh(5 * 0.2))])
@pytest.mark.parametrize("mu", [0.0, 0.3])
def test_mu_and_the_ramp_weigh_the_features_and_mu_the_critics_if_it_weighs_the_gap(weigh, ramp, share, mu):
    """By features it is the authors' gradient reversal with a coefficient."""
    run = SmallRun(Adapt(weigh=weigh, ramp=ramp), ProxyADistance(hidden=(4,)), mu=mu, progress=0.2)
    gaps, risks = run.modules["critic"](*run.domains()), run.risks()
    reached = risks.mean() + mu * share * gaps.mean()
    taken = takes(run, reached, of=run.network(), value=False, risks=risks, gaps=gaps)
    assert taken.objective.item() == pytest.approx((risks.mean() + mu * gaps.mean()).item())
    if mu or weigh == "gap":
        critics = mu if weigh == "gap" else 1
        same_gradient(taken.objective, critics * gaps.mean(), run.modules["critic"].parameters())


def plain_mdmn(run, penalty):
    """As PROTOCOL describes it, one pair and one sample at a time."""
    critic, every = run.modules["critic"], range(K + 1)
    domains = [run.domain(s) for s in every]
    w, spread = torch.ones(K + 1, K + 1), torch.zeros(K + 1)
    with torch.no_grad():
        m = torch.stack([critic(domain).mean(0) for domain in domains])
        for i in every:
            for s in every:
                if s != i:
                    w[s][i] = torch.sigmoid(m[s][i] - m[i][i])
                    spread[i] += w[s][i] * m[s][i]
            spread[i] -= m[i][i]
    beta = [*torch.softmax(spread[:K], 0), 1.0]
    total, count = 0.0, 0
    for s in every:
        for x in domains[s]:
            outputs = critic(2 * x.detach() - x)
            for i in every:
                c = w[s][i] / B if s != i else -1.0 / B
                total = total + beta[i] * c * outputs[i]
                count += 1
    draws = uniform(run.batch.key, (2,))
    chosen = domains[int(draws[0] * K)]
    between = (draws[1] * chosen + (1 - draws[1]) * domains[K]).detach().requires_grad_()
    (gradient,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
    loss = total / count + penalty * ((gradient.norm(dim=1) - 1) ** 2).mean()
    return run.risks().mean() + run.mu * loss, spread[:K], beta[:K]


@pytest.mark.parametrize("hidden", [(), (4,)])
def test_mdmn_equals_plain_loops(hidden):
    run = SmallRun(Mdmn(hidden=hidden), mu=0.5)
    objective, spread, beta = plain_mdmn(run, run.scheme.penalty)
    takes(run, objective, risks=run.risks(), gaps=spread, weights=beta)


def test_critics_learn_first_and_then_the_network_as_in_adapt():
    run = SmallRun(Alternate(), ProxyADistance(), GroupDro())
    critic, *_, network = run.stage.phases
    assert [phase.name for phase in run.stage.phases] == ["critic"] * 5 + ["network"]
    assert (critic.trains, {*network.trains}) == (("critic",), {"features", "predictor"})
    gaps = run.modules["critic"](*(rows.detach() for rows in run.domains()))
    taken = takes(run, gaps.sum(), of=run.modules.parameters(), risks=run.risks(), gaps=gaps, weights=[1 / K] * K)
    assert torch.equal(taken.state, run.state)
    found, expected = run.step(network), SmallRun(Adapt(), ProxyADistance(), GroupDro()).step()
    torch.testing.assert_close(found[:5], expected[:5], rtol=0, atol=0)
    assert not torch.equal(found.state, run.state)
    with pytest.raises(PluginError, match="discrepancy 'mmd' has none; use scheme 'adapt'"):
        SmallRun(Alternate(), Mmd())


BY = ("mcc", "bnm", "entropy")


def term(by, outputs, temperature):
    """The papers' values, element by element; MCC's weights have no gradient."""
    if by == "bnm":
        return -torch.linalg.matrix_norm(outputs.softmax(1), "nuc") / len(outputs)
    if by == "entropy":
        return torch.stack([-sum(p * p.log() for p in row) for row in outputs.softmax(1)]).mean()
    y = (outputs / temperature).softmax(1)
    sure = torch.stack([1 + torch.exp(sum(p * p.log() for p in row)) for row in y]).detach()
    w = len(y) * sure / sure.sum()
    c = sum(weight * torch.outer(row, row) for weight, row in zip(w, y, strict=True))
    return sum(c[j][m] / sum(c[j]) for j, m in permutations(range(CLASSES), 2)) / CLASSES


@pytest.mark.parametrize("temperature", [2.5, 1.0])
@pytest.mark.parametrize("by", BY)
def test_the_added_term_equals_the_papers(by, temperature):
    """The term is added to the aggregated objective."""
    run = SmallRun(Regularised(by=by, weight=0.7, temperature=temperature), Coral())
    risks, gaps = run.risks(), run.modules["critic"](*run.domains())
    added = 0.7 * term(by, run.modules["predictor"](run.domain(K)), temperature)
    takes(run, risks.mean() + run.mu * gaps.mean() + added, risks=risks, gaps=gaps)


@pytest.mark.parametrize("by", BY)
def test_classes_that_are_never_predicted_keep_the_term_finite(by):
    """If all predictions are certain of one class, other rows of the confusion matrix are exactly zero."""
    run = SmallRun(Regularised(by=by), NoDiscrepancy())
    with torch.no_grad():
        run.modules["predictor"].bias.copy_(torch.tensor([2000.0, 0.0, 0.0]))
    objective = run.step().objective
    assert objective.isfinite()
    assert all(gradient.isfinite().all() for gradient in torch.autograd.grad(objective, run.network()))


def plain_gap(run, i, margin):
    """margin E_source log sigma_h(f') + E_target log (1 - sigma_h(f')), with sigma the softmax."""
    total = 0.0
    for domain, weight in ((i, margin), (K, 1.0)):
        for feature in run.domain(domain):
            h = int(run.modules["predictor"](feature).argmax())
            scores = run.modules["critic"][i](feature).exp()
            sigma = scores[h] / scores.sum()
            total = total + weight * torch.log(sigma if domain == i else 1 - sigma) / B
    return total


@pytest.mark.parametrize("margin", [4.0, 2.0])
@pytest.mark.parametrize(
    ("ramp", "share"),
    [({"ramp": None}, 1.0), ({"ramp": 10.0}, math.tanh(5 * 0.2)), ({"ramp_steps": 4}, math.tanh(3 / 4))],
)
def test_classifiers_and_network_play_the_papers_game(margin, ramp, share):
    """Adversarial classifiers maximise their gaps; the network minimises the risks plus mu ramp times the mean gap."""
    run = SmallRun(Mdd(margin=margin, **ramp), mu=0.3, progress=0.2)
    assert all(step == 0 for step in run.batch.carried.values())
    run.carry({name: step + 3 for name, step in run.batch.carried.items()})
    gaps, risks = torch.stack([plain_gap(run, i, margin) for i in range(K)]), run.risks()
    best = margin * math.log(margin / (margin + 1)) + math.log(1 / (margin + 1))
    game = risks.mean() + 0.3 * share * gaps.mean()
    taken = takes(run, game, of=run.network(), value=False, risks=risks, gaps=gaps - best)
    same_gradient(taken.objective, -gaps.sum(), run.modules["critic"].parameters())
    assert taken.carried == ({"step": 4} if "ramp_steps" in ramp else {})


def test_the_best_classifier_of_two_equal_domains_has_no_gap():
    """p_h = margin / (margin + 1) on all examples, as the classifiers' bias gives it; a sure one has a large loss."""
    run = SmallRun(Mdd(), k=1)
    run.batch = run.batch._replace(x=run.x[:B].repeat(2, 1))
    with torch.no_grad():
        run.modules["predictor"].bias += torch.tensor([50.0, 0.0, 0.0])  # h is always the first class
        head = run.modules["critic"][0]
        head.weight.zero_()
        head.bias.copy_(torch.tensor([math.log(4 * (CLASSES - 1)), 0.0, 0.0]))
        assert run.step().gaps.tolist() == pytest.approx([0.0])
        head.bias.copy_(torch.tensor([60.0, 0.0, 0.0]))  # 1 - p_h is less than the rounding of p_h
        assert run.step().gaps.tolist() == pytest.approx([2.5020 - 60 + math.log(2)], abs=1e-3)


@pytest.mark.parametrize("discrepancy", [Coral(), ProxyADistance(hidden=(4,))])
def test_gaps_use_all_products(discrepancy):
    """All products of an example's features and probabilities; up to `limit` of them."""
    run = SmallRun(Cdan(sources="apart", predictions="trained", ramp=None, limit=15), discrepancy)
    joint = []
    for features in (run.domain(i) for i in range(K + 1)):
        probabilities = torch.softmax(run.modules["predictor"](features), 1)
        products = [torch.outer(*pair).flatten() for pair in zip(features, probabilities, strict=True)]
        joint.append(torch.stack(products))
    gaps, risks = run.modules["critic"].discrepancy(torch.stack(joint[:K]), joint[K]), run.risks()
    takes(run, risks.mean() + run.mu * gaps.mean(), risks=risks, gaps=gaps)


@pytest.mark.parametrize(
    ("ramp", "progress", "share"), [(None, 0.3, 1.0), (10.0, 0.3, math.tanh(5 * 0.3)), (10.0, 0.0, 0.0)]
)
@pytest.mark.parametrize("entropy", [False, True])
def test_by_default_it_is_the_authors_loss_of_pooled_sources(entropy, ramp, progress, share):
    """At mu 0.5, one critic's BCE over both batches, sum w BCE / sum w, with w scaled to add up to 1 in each.

    The target's batch is half of the pool's, and counts as much. The network gets (1 - e^-10t) / (1 + e^-10t) of the
    game's gradient, the critic all of it, and the predictor of losses without weights the risk's alone.
    """
    run = SmallRun(Cdan(entropy=entropy, ramp=ramp), ProxyADistance(hidden=(6, 6)), k=1, mu=0.5, progress=progress)
    run.batch = run.batch._replace(x=run.x[:6])
    features = run.modules["features"](run.x[[0, 1, 2, 3, 4, 5, 4, 5]])
    p = torch.softmax(run.modules["predictor"](features), 1)
    joint = torch.bmm(p.detach().unsqueeze(2), features.unsqueeze(1)).transpose(1, 2).flatten(1)
    answers = torch.sigmoid(run.modules["critic"].discrepancy.critics(joint[None])).view(8)
    losses = nn.functional.binary_cross_entropy(answers, torch.tensor([1.0] * 4 + [0.0] * 4), reduction="none")
    sure = 1 + torch.exp((p * p.log()).sum(1)) if entropy else torch.ones(8)
    weights = torch.cat([part / part.sum().detach() for part in (sure[:4], sure[4:])])
    game = (weights * losses).sum() / weights.sum().detach()
    network = run.risks()[0] - share * game
    taken = takes(run, network, of=run.network(), value=False, gaps=[2 - 2 * game])
    same_gradient(taken.objective, game, run.modules["critic"].parameters(), atol=1e-14)


def test_discrepancies_without_example_weights_are_refused():
    with pytest.raises(PluginError, match="'coral' takes no weights of examples; use d_A, or set entropy: false"):
        SmallRun(Cdan(entropy=True), Coral())


def test_many_products_are_sketched_at_random():
    """Inner products are unbiased: E <T(a), T(b)> = <f_a, f_b> <p_a, p_b>."""
    run = SmallRun(Cdan(limit=14, random=40000), Coral())
    critic, features = run.modules["critic"], run.domain(0)
    critic.discrepancy = nn.Bilinear(1, 1, 1)
    critic.discrepancy.forward = lambda one, other: one @ other.T
    probabilities = torch.softmax(run.modules["predictor"](features), 1)
    expected = (features @ features.T) * (probabilities @ probabilities.T)
    found = critic(features, features, probabilities, probabilities)
    assert torch.allclose(found, expected, atol=0.05 * expected.abs().max().item())
