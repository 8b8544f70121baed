"""Schemes with one classifier agree with plain loops."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from msda_bench.functional import uniform
from msda_bench_builtin.discrepancies import Coral, NoDiscrepancy
from msda_bench_builtin.schemes import Adapt, Mdmn, Pooled, TargetOnly
from tests.builtin.gradients import same_gradient
from tests.builtin.schemes.small_run import B, K, SmallRun


def test_groups_and_steps_are_as_documented() -> None:
    sources = ("a", "b", "c")
    assert Adapt().groups(sources, "t") == (("a",), ("b",), ("c",))
    assert Pooled().groups(sources, "t") == (("a", "b", "c"),)
    assert TargetOnly().groups(sources, "t") == (("t",),)
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


def test_target_only_minimises_the_target_risk() -> None:
    run = SmallRun(TargetOnly(), NoDiscrepancy(), k=1)
    run.batch = run.batch._replace(x=run.x[:B])
    taken = run.step(run.scheme.stages[0].phases[0])
    assert taken.risks.tolist() == pytest.approx([run.risk(0).item()])
    assert taken.objective.item() == pytest.approx(taken.risks.item())
    assert taken.weights.tolist() == [1]


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
