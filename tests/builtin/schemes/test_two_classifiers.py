"""M3SDA and MCD agree with plain loops, phase by phase."""

from __future__ import annotations

from itertools import combinations

import pytest
import torch
from torch import Tensor

from msda_bench.api import Batch, Scheme
from msda_bench_builtin.schemes import M3sda, Mcd
from tests.builtin.gradients import same_gradient
from tests.builtin.schemes.small_run import CLASSES, B, K, SmallRun

HEADS = ("predictor", "critic")


def moment_distance(one: Tensor, other: Tensor, orders: int, *, centred: bool) -> Tensor:
    """One order and one feature at a time."""
    total = torch.zeros((), dtype=torch.float64)
    for order in range(1, orders + 1):
        squares = torch.zeros((), dtype=torch.float64)
        for feature in range(one.shape[1]):
            columns = [domain[:, feature] for domain in (one, other)]
            if centred and order > 1:
                columns = [column - column.mean() for column in columns]
            first, second = [sum(value**order for value in column) / B for column in columns]
            squares = squares + (first - second) ** 2
        total = total + squares.sqrt()
    return total


def moments(run: SmallRun, scheme: M3sda, k: int) -> tuple[Tensor, list[Tensor]]:
    """The moment distance of all domains, and the distance of each source to the target."""
    domains = [run.domain(i) for i in range(k + 1)]

    def between(i: int, j: int) -> Tensor:
        return moment_distance(domains[i], domains[j], scheme.orders, centred=scheme.centred)

    gaps, pairs = [between(i, k) for i in range(k)], [between(i, j) for i, j in combinations(range(k), 2)]
    if scheme.scale == "sum":
        return torch.stack(gaps + pairs).sum(), gaps
    return torch.stack(gaps).mean() + (torch.stack(pairs).mean() if pairs else 0), gaps


def disagreement(run: SmallRun, i: int) -> Tensor:
    first, second = (torch.softmax(run.modules[name](run.domain(i)), 1) for name in HEADS)
    return (first - second).abs().mean()


@pytest.mark.parametrize("k", [1, K])
@pytest.mark.parametrize(
    "scheme", [M3sda(), M3sda(orders=2, scale="mean"), M3sda(orders=1), M3sda(orders=5, centred=True), Mcd()]
)
def test_each_phase_equals_plain_loops(scheme: Scheme, k: int) -> None:
    run = SmallRun(scheme, k=k)
    risks = torch.stack([torch.stack([run.risk(i, head) for head in HEADS]) for i in range(k)])
    apart = disagreement(run, k)
    if isinstance(scheme, M3sda):
        distance, gaps = moments(run, scheme, k)
        first, task = risks.sum() + run.mu * distance, risks.sum()
    else:
        gaps = [(apart - disagreement(run, i)).abs() for i in range(k)]
        first = task = risks.sum() / k
    for phase, expected in zip(scheme.stages[0].phases[:3], (first, task - apart, apart), strict=True):
        taken = run.step(phase)
        assert torch.allclose(taken.objective, expected, rtol=1e-9)
        assert torch.allclose(taken.risks, risks.mean(1), rtol=1e-9)
        assert torch.allclose(taken.gaps, torch.stack(gaps), rtol=1e-9)
        assert taken.weights.tolist() == [1 / k] * k
        same_gradient(taken.objective, expected, run.trained(phase))


def test_phases_repeat_as_requested() -> None:
    assert [phase.name for phase in M3sda().stages[0].phases] == ["task", "classifiers", "features"]
    assert [phase.trains for phase in M3sda(repeats=1).stages[0].phases[1:]] == [HEADS, ("features",)]
    assert Mcd().stages[0].phases == M3sda(repeats=4).stages[0].phases
    assert [phase.trains for phase in Mcd().stages[0].phases[2:]] == [("features",)] * 4


def test_the_classifiers_phase_gives_the_features_no_gradient() -> None:
    run = SmallRun(M3sda())
    torch.autograd.backward(run.step(run.scheme.stages[0].phases[1]).objective)
    assert [value.grad for value in run.modules["features"].parameters()] == [None, None]


def test_the_second_classifier_has_the_shape_of_the_first_and_new_weights() -> None:
    first, second = (SmallRun(M3sda()).modules[name].state_dict() for name in HEADS)
    assert {name: value.shape for name, value in first.items()} == {name: v.shape for name, v in second.items()}
    assert not any(first[name].equal(second[name]) for name in first)


def test_domains_with_equal_features_have_finite_gradients() -> None:
    run = SmallRun(M3sda())
    run.batch = run.batch._replace(x=run.x[:B].repeat(K + 1, 1))
    taken = run.step(run.scheme.stages[0].phases[0])
    torch.autograd.backward(taken.objective)
    assert taken.gaps.tolist() == [0.0] * K
    assert all(bool(value.grad.isfinite().all()) for value in run.modules.parameters())  # type: ignore[union-attr]


@pytest.mark.parametrize("scheme", [M3sda(), Mcd()], ids=lambda one: one.name)
def test_training_learns_a_target_without_labels(scheme: Scheme) -> None:
    """Three classes at three corners, slightly shifted in each domain."""
    run = SmallRun(scheme)
    generator = torch.Generator().manual_seed(5)
    corners = 2 * torch.eye(CLASSES, 6, dtype=torch.float64)
    moves = 0.5 * torch.randn(K + 1, 1, 6, dtype=torch.float64, generator=generator)
    labels = torch.randint(0, CLASSES, (K + 1, 40), generator=generator)
    x = corners[labels] + moves + 0.3 * torch.randn(K + 1, 40, 6, dtype=torch.float64, generator=generator)
    run.batch = Batch(x.flatten(0, 1), labels[:K], run.batch.key)
    for _ in range(60):
        for phase in scheme.stages[0].phases:
            run.descend(phase, 0.05)
    found = run.modules["predictor"](run.modules["features"](x[K])).argmax(1)
    assert (found == labels[K]).double().mean() > 0.8
