"""WJDOT agrees with scipy's linear programme."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import linprog
from torch import Tensor

from msda_bench.api import Sizes, Stage, Step
from msda_bench_builtin.schemes import Wjdot
from msda_bench_builtin.schemes.wjdot import transport
from tests.builtin.gradients import same_gradient
from tests.builtin.schemes.small_run import B, K, SmallRun

EXACT = Wjdot(blur=0.002, iterations=3000)


def exact(cost: Tensor, weights: Tensor) -> tuple[float, Tensor]:
    """The least cost of moving weighted points to equal ones, and its plan, by the simplex method."""
    n, m = cost.shape
    marginals = np.vstack([np.kron(np.eye(n), np.ones(m)), np.kron(np.ones(n), np.eye(m))])
    right = np.concatenate([weights.numpy(), np.full(m, 1 / m)])
    found = linprog(cost.numpy().ravel(), A_eq=marginals, b_eq=right)
    return found.fun, torch.from_numpy(found.x).view(n, m)


def test_transport_equals_the_linear_programmes() -> None:
    generator = torch.Generator().manual_seed(3)
    cost = torch.rand(7, 5, dtype=torch.float64, generator=generator)
    weights = torch.tensor([0.3, 0.1, 0.0, 0.2, 0.15, 0.05, 0.2], dtype=torch.float64)
    plan, potentials = transport(cost, weights, 0.002, 3000)
    value, expected = exact(cost, weights)
    assert float((plan * cost).sum()) == pytest.approx(value, abs=2e-3)
    assert torch.allclose(plan, expected, atol=5e-3)
    assert torch.allclose(plan.sum(0), torch.full((5,), 0.2, dtype=torch.float64))
    assert float(plan[2].sum()) == 0
    for one, other in ((0, 3), (1, 2)):  # moving weight to a point, even one of weight 0, costs the potentials' gap
        moved = weights.clone()
        moved[one] -= 1e-3
        moved[other] += 1e-3
        change = (exact(cost, moved)[0] - value) / 1e-3
        assert float(potentials[other] - potentials[one]) == pytest.approx(change, abs=0.02)


def taken(run: SmallRun, alpha: Tensor) -> Step:
    run.batch = run.batch._replace(carried={"alpha": alpha})
    return run.step(run.scheme.stages[1].phases[0])


def cost_of(run: SmallRun, beta: float) -> Tensor:
    """One pair at a time."""
    source = torch.cat([run.domain(i) for i in range(K)]).detach()
    target, labels = run.domain(K).detach(), run.batch.y.flatten()
    squares = torch.stack([((x - target) ** 2).sum(1) for x in source])
    probabilities = torch.softmax(run.modules["predictor"](target), 1)
    losses = torch.stack([-probabilities[:, label].log() for label in labels])
    return beta * squares / squares.mean() + losses


def test_the_predictor_follows_the_plan_and_alpha_the_potentials() -> None:
    scheme = Wjdot(beta=0.7, rate=0.5, blur=EXACT.blur, iterations=EXACT.iterations)
    run, alpha = SmallRun(scheme), torch.tensor([0.5, 0.2, 0.3], dtype=torch.float64)
    step, cost = taken(run, alpha), cost_of(run, 0.7)
    value, plan = exact(cost.detach(), (alpha / B).repeat_interleave(B))
    assert step.objective.item() == pytest.approx(value, rel=5e-3)
    same_gradient(step.objective, (plan * cost).sum(), run.modules["predictor"].parameters(), atol=5e-3)
    assert run.trained(run.scheme.stages[1].phases[0]) == list(run.modules["predictor"].parameters())

    moved = step.carried["alpha"]
    assert float(moved.sum()) == pytest.approx(1)
    gradient = []
    for i in range(K):  # by finite differences along each source
        towards = torch.nn.functional.one_hot(torch.tensor(i), K).double() - 1 / K
        nearby = [exact(cost.detach(), ((alpha + s * towards) / B).repeat_interleave(B))[0] for s in (1e-3, -1e-3)]
        gradient.append((nearby[0] - nearby[1]) / 2e-3)
    assert step.gaps.tolist() == pytest.approx(gradient, abs=0.02)
    plain = alpha - 0.5 * step.gaps  # all of it inside the simplex here, so the projection is the identity
    assert (plain > 0).all()
    assert torch.allclose(moved, plain)
    sizes = Sizes((B,) * K, B, 5, 3)
    assert run.scheme.carry(run.parts, sizes, run.scheme.stages[1])["alpha"].tolist() == [pytest.approx(1 / K)] * K
    far = taken(SmallRun(Wjdot(rate=1e3)), alpha).carried["alpha"]
    assert (float(far.min()), float(far.sum())) == (0, pytest.approx(1))


def test_each_sources_embedding_uses_its_own_classifier() -> None:
    run = SmallRun(Wjdot())
    stage: Stage = run.scheme.stages[0]
    assert stage.sees == ("sources",)
    run.batch = run.batch._replace(x=run.x[: K * B])
    step = run.step(stage.phases[0])
    heads = run.modules["critic"].of
    risks = [torch.nn.functional.cross_entropy(heads[i](run.domain(i)), run.batch.y[i]) for i in range(K)]
    assert torch.allclose(step.risks, torch.stack(risks))
    same_gradient(step.objective, torch.stack(risks).mean(), run.modules["features"].parameters())
    assert torch.autograd.grad(step.objective, next(run.modules["predictor"].parameters()))[0].any()
