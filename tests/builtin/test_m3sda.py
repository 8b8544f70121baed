"""M3SDA against plain loops, phase by phase."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor, nn

from msda_bench.api import Batch, Network, Parts, PluginError, Step
from msda_bench_builtin.schemes import M3sda

K, B, D, CLASSES = 3, 4, 5, 3
MU = 0.3
STATE = torch.zeros(0)


class Run:
    """One run of a small network in float64."""

    def __init__(self, scheme: M3sda, seed: int = 0, k: int = K) -> None:
        generator = torch.Generator().manual_seed(seed)
        torch.manual_seed(seed)
        self.scheme = scheme
        features = nn.Sequential(nn.Linear(6, D), nn.ReLU())
        network = Network(features, nn.Linear(D, CLASSES), D)
        critic = scheme.build(network, k, None)
        self.modules = nn.ModuleDict({"features": features, "predictor": network.predictor, "critic": critic}).double()
        x = torch.randn((k + 1) * B, 6, dtype=torch.float64, generator=generator)
        y = torch.randint(0, CLASSES, (k, B), generator=generator)
        self.x = x
        self.batch = Batch(x, y, torch.tensor([seed, 1], dtype=torch.int32))

    def step(self, phase: int, call: Callable[[str, Tensor], Tensor] | None = None, batch: Batch | None = None) -> Step:
        by_name = call or (lambda name, x: self.modules[name](x))
        parts = Parts(
            features=lambda x: by_name("features", x),  # type: ignore[arg-type]
            predictor=lambda x: by_name("predictor", x),
            critic=lambda x: by_name("critic", x),
            loss=lambda outputs, labels: nn.functional.cross_entropy(outputs, labels, reduction="none"),
            aggregate=lambda *_: pytest.fail("no aggregator is to be called"),
            mu=MU,
        )
        return self.scheme.step(parts, batch or self.batch, STATE, self.scheme.phases[phase])


def distance(one: Tensor, other: Tensor, order: int) -> Tensor:
    """Of the moments of an order, one feature at a time."""
    total = torch.zeros((), dtype=torch.float64)
    for feature in range(one.shape[1]):
        means = [sum(row[feature] ** order for row in domain) / len(domain) for domain in (one, other)]
        total = total + (means[0] - means[1]) ** 2
    return total.sqrt()


def plain(run: Run) -> dict[str, Tensor]:
    """The three terms and the recorded values, one pair of domains and one example at a time."""
    k, scheme = len(run.batch.y), run.scheme
    domains = [run.modules["features"](run.x[i * B : (i + 1) * B]) for i in range(k + 1)]
    spread = [domain - domain.mean(0) if scheme.centred else domain for domain in domains]

    def between(i: int, j: int) -> Tensor:
        higher = [distance(spread[i], spread[j], order) for order in range(2, scheme.orders + 1)]
        return torch.stack([distance(domains[i], domains[j], 1), *higher]).sum()

    gaps = [between(i, k) for i in range(k)]
    pairs = [between(i, j) for i, j in combinations(range(k), 2)]
    if scheme.scale == "mean":
        moments = sum(gaps) / k + (sum(pairs) / len(pairs) if pairs else 0)
    else:
        moments = sum(gaps) + sum(pairs)
    heads = (run.modules["predictor"], run.modules["critic"])
    risks = [[nn.functional.cross_entropy(head(domains[i]), run.batch.y[i]) for head in heads] for i in range(k)]
    apart = [(torch.softmax(heads[0](x), 0) - torch.softmax(heads[1](x), 0)).abs() for x in domains[k]]
    return {
        "task": torch.stack([risk for both in risks for risk in both]).sum(),
        "moments": moments,  # type: ignore[dict-item]
        "apart": torch.stack(apart).mean(),
        "risks": torch.stack([sum(both) / 2 for both in risks]),  # type: ignore[misc]
        "gaps": torch.stack(gaps),  # type: ignore[arg-type]
    }


def close(one: Any, other: Any) -> bool:
    return torch.allclose(one, other, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("k", [1, K])
@pytest.mark.parametrize(
    "scheme", [M3sda(), M3sda(orders=2, scale="mean"), M3sda(orders=1), M3sda(orders=5, centred=True)]
)
def test_against_plain_loops(scheme: M3sda, k: int) -> None:
    run = Run(scheme, k=k)
    expected = plain(run)
    objectives = (
        expected["task"] + MU * expected["moments"],
        expected["task"] - expected["apart"],
        expected["apart"],
    )
    for phase, objective in enumerate(objectives):
        taken = run.step(phase)
        assert close(taken.objective, objective)
        assert close(taken.risks, expected["risks"])
        assert close(taken.gaps, expected["gaps"])
        assert taken.weights.tolist() == [1 / k] * k
        trained = [value for name in scheme.phases[phase].trains for value in run.modules[name].parameters()]
        found = torch.autograd.grad(taken.objective, trained)
        for one, other in zip(found, torch.autograd.grad(objective, trained, retain_graph=True), strict=True):
            assert close(one, other)


def descend(run: Run, phase: int, batch: Batch, rate: float) -> Tensor:
    """One step of gradient descent on a phase, for what it names; gives the objective before it."""
    objective = run.step(phase, batch=batch).objective
    trained = [value for name in run.scheme.phases[phase].trains for value in run.modules[name].parameters()]
    with torch.no_grad():
        for value, gradient in zip(trained, torch.autograd.grad(objective, trained), strict=True):
            value.sub_(rate * gradient)
    return objective.detach()


@pytest.mark.parametrize("phase", [0, 1, 2])
def test_a_phase_moves_what_it_names_and_that_lowers_its_objective(phase: int) -> None:
    run = Run(M3sda())
    before = {name: value.clone() for name, value in run.modules.state_dict().items()}
    start = descend(run, phase, run.batch, rate=1e-3)
    moved = {name.split(".")[0] for name, value in run.modules.state_dict().items() if not value.equal(before[name])}
    assert moved == set(run.scheme.phases[phase].trains)
    assert run.step(phase).objective < start


def test_the_classifiers_phase_spares_the_features_their_gradient() -> None:
    run = Run(M3sda())
    torch.autograd.backward(run.step(1).objective)
    assert [value.grad for value in run.modules["features"].parameters()] == [None, None]


def test_phases_and_repeats() -> None:
    assert [phase.name for phase in M3sda().phases] == ["task", "classifiers", "features"]
    assert [phase.trains for phase in M3sda(repeats=4).phases[2:]] == [("features",)] * 4


def test_the_second_classifier_has_the_first_ones_shape_and_weights_of_its_own() -> None:
    modules = Run(M3sda()).modules
    first, second = modules["predictor"].state_dict(), modules["critic"].state_dict()
    assert {name: value.shape for name, value in first.items()} == {name: v.shape for name, v in second.items()}
    assert not any(first[name].equal(second[name]) for name in first)


def test_domains_with_the_same_features_have_finite_gradients() -> None:
    run = Run(M3sda())
    same = run.x[:B].repeat(K + 1, 1)
    taken = run.step(0, batch=run.batch._replace(x=same))
    torch.autograd.backward(taken.objective)
    assert taken.gaps.tolist() == [0.0] * K
    assert all(bool(value.grad.isfinite().all()) for value in run.modules.parameters())  # type: ignore[union-attr]


@pytest.mark.parametrize("phase", [0, 1, 2])
def test_two_runs_in_a_stack_are_each_as_alone(phase: int) -> None:
    runs = [Run(M3sda(), seed) for seed in (1, 2)]
    parameters, _ = torch.func.stack_module_state([run.modules for run in runs])

    def objective(values: dict[str, Tensor], x: Tensor, y: Tensor, key: Tensor) -> Tensor:
        def call(name: str, x: Tensor) -> Tensor:
            own = {full.removeprefix(f"{name}."): v for full, v in values.items() if full.startswith(f"{name}.")}
            found: Tensor = torch.func.functional_call(runs[0].modules[name], own, (x,))
            return found

        return runs[0].step(phase, call, Batch(x, y, key)).objective

    stacked = [torch.stack(list(tensors)) for tensors in zip(*(run.batch[:3] for run in runs), strict=True)]
    gradients, found = torch.func.vmap(torch.func.grad_and_value(objective))(parameters, *stacked)
    for place, run in enumerate(runs):
        alone = run.step(phase).objective
        assert close(found[place], alone)
        torch.autograd.backward(alone)
        for name, value in run.modules.named_parameters():
            expected = torch.zeros_like(value) if value.grad is None else value.grad
            assert close(gradients[name][place], expected)


def test_it_learns_a_target_without_labels() -> None:
    """Three classes at three corners; each domain sees them moved a little, the target too."""
    run = Run(M3sda())
    generator = torch.Generator().manual_seed(5)
    corners = 2 * torch.eye(CLASSES, 6, dtype=torch.float64)
    moves = 0.5 * torch.randn(K + 1, 1, 6, dtype=torch.float64, generator=generator)
    labels = torch.randint(0, CLASSES, (K + 1, 40), generator=generator)
    x = corners[labels] + moves + 0.3 * torch.randn(K + 1, 40, 6, dtype=torch.float64, generator=generator)
    batch = Batch(x.flatten(0, 1), labels[:K], run.batch.key)
    for _ in range(60):
        for phase in range(len(run.scheme.phases)):
            descend(run, phase, batch, rate=0.05)
    found = run.modules["predictor"](run.modules["features"](x[K])).argmax(1)
    assert (found == labels[K]).double().mean() > 0.8


def test_a_predictor_that_cannot_be_drawn_anew_is_named() -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.ones(D))

    with pytest.raises(PluginError, match="module Scaled holds parameters but has no reset_parameters"):
        M3sda().build(Network(nn.Identity(), Scaled(), D), K, None)


@pytest.mark.parametrize("wrong", [{"orders": 0}, {"repeats": 0}, {"scale": "median"}])
def test_parameters_are_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        M3sda(**wrong)
