"""MFSAN agrees with plain loops."""

from __future__ import annotations

import math
from itertools import combinations

import pytest
import torch
from torch import Tensor, nn

from msda_bench_builtin.schemes import Mfsan
from tests.builtin.gradients import same_gradient
from tests.builtin.schemes.small_run import B, K, SmallRun


def branch(run: SmallRun, i: int, domain: int) -> tuple[Tensor, Tensor]:
    """Source i's own features of a domain, and its classifier's logits."""
    critic = run.modules["critic"]
    own = critic["extractors"].of[i](run.domain(domain))
    return own, critic["classifiers"].of[i](own)


def mmd(one: Tensor, other: Tensor, kernels: int) -> Tensor:
    """The authors' estimate, pair by pair: the sum of Gaussian kernels, with bandwidths around the mean distance."""
    rows = [*one, *other]
    squares = [[((x - y) ** 2).sum() for y in rows] for x in rows]
    n = len(rows)
    width = sum(value for line in squares for value in line).detach() / (n * n - n) / 2 ** (kernels // 2)
    total = torch.zeros(())
    for i in range(n):
        for j in range(n):
            sign = 1 if (i < len(one)) == (j < len(one)) else -1
            total = total + sign * sum(torch.exp(-squares[i][j] / (width * 2**e)) for e in range(kernels))
    return total / len(one) ** 2


@pytest.mark.parametrize(("k", "progress"), [(1, 1.0), (K, 0.0), (K, 0.2)])
def test_the_objective_equals_plain_loops(k: int, progress: float) -> None:
    run = SmallRun(Mfsan(), k=k)
    run.batch = run.batch._replace(progress=torch.tensor(progress))
    taken = run.step(run.scheme.stages[0].phases[0])
    risks = [nn.functional.cross_entropy(branch(run, i, i)[1], run.batch.y[i]) for i in range(k)]
    gaps = [mmd(branch(run, i, i)[0], branch(run, i, k)[0], 5) for i in range(k)]
    answers = [branch(run, i, k)[1].softmax(1) for i in range(k)]
    pairs = [(answers[i] - answers[j]).abs().mean() for i, j in combinations(range(k), 2)]
    ramp = 2 / (1 + math.exp(-10 * progress)) - 1
    expected = torch.stack(risks).mean() + run.mu * ramp * (sum(gaps) / k + sum(pairs) / max(1, len(pairs)))
    assert taken.risks.tolist() == pytest.approx([risk.item() for risk in risks])
    assert taken.gaps.tolist() == pytest.approx([gap.item() for gap in gaps], rel=1e-4)
    assert taken.weights.tolist() == [1 / k] * k
    assert taken.objective.item() == pytest.approx(expected.item(), rel=1e-6)
    same_gradient(taken.objective, expected, run.trained(run.scheme.stages[0].phases[0]))


def test_without_a_ramp_the_weight_is_full_at_once() -> None:
    plain, ramped = (SmallRun(Mfsan(ramp=ramp)) for ramp in (None, 10.0))
    ramped.batch = ramped.batch._replace(progress=torch.tensor(1e6))
    objectives = [run.step(run.scheme.stages[0].phases[0]).objective.item() for run in (plain, ramped)]
    assert objectives[0] == pytest.approx(objectives[1])


def test_the_test_averages_probabilities() -> None:
    run = SmallRun(Mfsan())
    features, outputs = run.scheme.predict(run.parts, run.x[-B:], {})
    mean = sum(branch(run, i, K)[1].softmax(1) for i in range(K)) / K
    assert torch.allclose(outputs.exp(), mean)
    assert torch.equal(features, run.domain(K))
