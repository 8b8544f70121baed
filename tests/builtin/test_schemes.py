"""The schemes against plain loops."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from msda_bench.api import Batch, Network, Parts, Scheme
from msda_bench.functional import uniform
from msda_bench_builtin.aggregators import Uniform
from msda_bench_builtin.discrepancies import NoDiscrepancy
from msda_bench_builtin.schemes import Adapt, Mdmn, Pooled, TargetOnly

K, B, D = 3, 4, 5
KEY = torch.tensor([11, 22], dtype=torch.int32)


def parts(critic: nn.Module, mu: float = 0.5) -> Parts:
    torch.manual_seed(1)
    return Parts(
        features=nn.Linear(6, D).double(),
        predictor=nn.Linear(D, 2).double(),
        critic=critic.double(),
        loss=lambda outputs, labels: nn.functional.cross_entropy(outputs, labels, reduction="none"),
        aggregate=lambda risks, gaps, state: Uniform()(risks, gaps, mu, state),
        mu=mu,
    )


def batch(rows: int) -> Batch:
    generator = torch.Generator().manual_seed(2)
    x = torch.randn(rows, 6, dtype=torch.float64, generator=generator)
    return Batch(x, torch.randint(0, 2, (K, B), generator=generator), KEY)


def step(scheme: Scheme, used: Parts, given: Batch) -> Any:
    return scheme.step(used, given, torch.zeros(0), scheme.phases[0])


def test_groups_and_steps() -> None:
    sources = ("a", "b", "c")
    assert Adapt().groups(sources, "t") == (("a",), ("b",), ("c",))
    assert Pooled().groups(sources, "t") == (("a", "b", "c"),)
    assert TargetOnly().groups(sources, "t") == (("t",),)
    assert Adapt().steps(((2000,), (1990,)), 20) == 100
    assert Pooled().steps(((2000, 2000, 2000),), 20) == 300
    assert Pooled(epoch="domain").steps(((2000, 2000, 2000),), 20) == 100
    assert Adapt().steps(((5,),), 20) == 1


def test_adapt_aggregates_risks_of_one_pass() -> None:
    used, given = parts(NoDiscrepancy().build(D, K)), batch((K + 1) * B)
    taken = step(Adapt(), used, given)
    for i in range(K):
        rows = given.x[i * B : (i + 1) * B]
        alone = nn.functional.cross_entropy(used.predictor(used.features(rows)), given.y[i])
        assert taken.risks[i].item() == pytest.approx(alone.item())
    assert taken.objective.item() == pytest.approx(taken.risks.mean().item())


def plain_mdmn(used: Parts, given: Batch, penalty: float) -> tuple[Tensor, Tensor, Tensor]:
    """As PROTOCOL describes it, one pair and one sample at a time."""
    domains = [used.features(given.x[s * B : (s + 1) * B]) for s in range(K + 1)]
    with torch.no_grad():
        m = [[used.critic(domains[s])[:, i].mean() for i in range(K + 1)] for s in range(K + 1)]
        w = [[torch.sigmoid(m[s][i] - m[i][i]) if s != i else 1.0 for i in range(K + 1)] for s in range(K + 1)]
        spread = torch.stack([sum(w[s][i] * m[s][i] for s in range(K + 1) if s != i) - m[i][i] for i in range(K + 1)])
        beta = [*torch.softmax(spread[:K], 0), torch.tensor(1.0)]
    total, count = torch.zeros((), dtype=torch.float64), 0
    for s in range(K + 1):
        for x in domains[s]:
            outputs = used.critic(2 * x.detach() - x)
            for i in range(K + 1):
                c = w[s][i] / B if s != i else -1.0 / B
                total = total + beta[i] * c * outputs[i]
                count += 1
    draws = uniform(given.key, (2,))
    chosen = domains[int(draws[0] * K)]
    between = (draws[1] * chosen + (1 - draws[1]) * domains[K]).detach().requires_grad_()
    (gradient,) = torch.autograd.grad(used.critic(between).sum(), between, create_graph=True)
    loss = total / count + penalty * ((gradient.norm(dim=1) - 1) ** 2).mean()
    risks = torch.stack(
        [nn.functional.cross_entropy(used.predictor(domains[i]), given.y[i]) for i in range(K)],
    )
    return risks.mean() + used.mu * loss, spread[:K], torch.stack(beta[:K])


@pytest.mark.parametrize("hidden", [(), (4,)])
def test_mdmn_against_plain_loops(hidden: tuple[int, ...]) -> None:
    torch.manual_seed(3)
    scheme = Mdmn(hidden=hidden)
    critic = scheme.build(Network(nn.Identity(), nn.Identity(), D), K, None).double()
    used, given = parts(critic), batch((K + 1) * B)
    taken = step(scheme, used, given)
    objective, spread, beta = plain_mdmn(used, given, scheme.penalty)
    assert taken.objective.item() == pytest.approx(objective.item())
    assert torch.allclose(taken.gaps, spread)
    assert torch.allclose(taken.weights, beta)
    learned = [*used.features.parameters(), *critic.parameters()]  # type: ignore[attr-defined]
    found = torch.autograd.grad(taken.objective, learned, allow_unused=True)
    expected = torch.autograd.grad(objective, learned, allow_unused=True)
    for one, other in zip(found, expected, strict=True):
        assert torch.allclose(one, other, atol=1e-12)


def test_target_only_is_the_risk() -> None:
    given = batch(B)
    given = given._replace(y=given.y[:1])
    taken = step(TargetOnly(), parts(nn.Identity()), given)
    assert taken.risks.shape == (1,)
    assert taken.objective.item() == pytest.approx(taken.risks.item())
    assert taken.weights.tolist() == [1]
