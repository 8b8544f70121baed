"""One model per source: the ensemble, and the single model that is best on other sources."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
import torch
from torch import Tensor, nn

from msda_bench.api import Scheme, Sizes, Stage
from msda_bench_builtin.schemes import BestSingle, Ensemble
from tests.builtin.schemes.small_run import B, K, SmallRun

SCHEMES = (Ensemble(), BestSingle())
NEW = torch.randn(7, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def started(scheme: Scheme, k: int = K) -> SmallRun:
    run = SmallRun(scheme, k=k)
    run.batch = run.batch._replace(x=run.x[: k * B])
    run.enter(scheme.stages[0])
    return run


def model(run: SmallRun, i: int) -> nn.ModuleList:
    """A source's features and predictor."""
    parts = run.modules if i == 0 else run.modules["critic"][i - 1]
    return nn.ModuleList([parts["features"], parts["predictor"]])


def answer(run: SmallRun, i: int, x: Tensor) -> Tensor:
    features, predictor = model(run, i)
    found: Tensor = predictor(features(x))
    return found


def loss(run: SmallRun, i: int, source: int) -> Tensor:
    """The risk of one source's model on another source."""
    return nn.functional.cross_entropy(answer(run, i, run.x[source * B : (source + 1) * B]), run.batch.y[source])


@pytest.mark.parametrize("scheme", SCHEMES, ids=lambda one: one.name)
def test_each_model_learns_only_from_its_own_source(scheme: Scheme) -> None:
    run = started(scheme)
    taken = run.step(scheme.stages[0].phases[0])
    assert taken.risks.tolist() == pytest.approx([loss(run, i, i).item() for i in range(K)])
    for i in range(K):
        weights = list(model(run, i).parameters())
        found = torch.autograd.grad(taken.objective, weights, retain_graph=True)
        for one, other in zip(found, torch.autograd.grad(loss(run, i, i), weights), strict=True):
            assert torch.allclose(one, other)


def test_models_have_different_initial_weights() -> None:
    run = started(Ensemble())
    first, *others = [torch.cat([value.flatten() for value in model(run, i).parameters()]) for i in range(K)]
    assert all(len(other) == len(first) and not other.eq(first).any() for other in others)


def test_the_ensemble_averages_probabilities() -> None:
    run = started(Ensemble())
    features, outputs = run.scheme.predict(run.parts, NEW, run.batch.carried)
    expected = sum(torch.softmax(answer(run, i, NEW), 1) for i in range(K)) / K
    assert torch.allclose(outputs.exp(), expected)
    assert torch.allclose(features, torch.cat([model(run, i)[0](NEW) for i in range(K)], 1))


def test_regression_outputs_are_averaged_directly() -> None:
    run = started(Ensemble())
    for i in range(K):
        parts = run.modules if i == 0 else run.modules["critic"][i - 1]
        parts["predictor"] = nn.Linear(5, 1).double()
    _, outputs = run.scheme.predict(run.parts, NEW, run.batch.carried)
    assert torch.allclose(outputs, sum(answer(run, i, NEW) for i in range(K)) / K)


def follow(run: SmallRun) -> Mapping[str, Tensor]:
    with torch.no_grad():
        found = run.scheme.after_step(run.parts, run.batch, run.scheme.stages[0].phases[0])
    run.batch = run.batch._replace(carried={**run.batch.carried, **found})
    return found


def test_the_best_single_is_best_on_the_other_sources() -> None:
    """A model's own source is ignored, and the chosen model is tested and recorded."""
    run = started(BestSingle(decay=0.9, by="loss"))
    others = [sum(loss(run, i, j).item() for j in range(K) if j != i) / (K - 1) for i in range(K)]
    best = min(range(K), key=others.__getitem__)
    assert best != 0  # which is also what no choice at all gives
    found = follow(run)
    assert found["elsewhere"].tolist() == pytest.approx([0.1 * one for one in others])
    assert follow(run)["elsewhere"].tolist() == pytest.approx([0.19 * one for one in others])
    one_hot = [float(i == best) for i in range(K)]
    taken = run.step(run.scheme.stages[0].phases[0])
    assert taken.weights.tolist() == one_hot
    assert taken.gaps.tolist() == pytest.approx([0.19 * one for one in others])
    features, outputs = run.scheme.predict(run.parts, NEW, run.batch.carried)
    assert torch.allclose(outputs, answer(run, best, NEW))
    assert torch.allclose(features, model(run, best)[0](NEW))


def test_the_best_single_makes_the_fewest_errors_and_of_equal_ones_has_the_least_loss() -> None:
    """The model of the least loss is sure of nothing; the other two are as often right, one of them with less loss."""
    run = started(BestSingle(decay=0.9))
    run.batch = run.batch._replace(y=torch.zeros_like(run.batch.y))
    logits = ([0.0, 0.1, 0.0], [5.0, 0.0, 0.0], [9.0, 0.0, 0.0])
    for i, biases in enumerate(logits):
        _, predictor = model(run, i)
        with torch.no_grad():
            predictor.weight.zero_()
            predictor.bias.copy_(torch.tensor(biases))
    run.batch.y[:, 0] = 2  # one of four examples of each source
    losses = [sum(loss(run, i, j).item() for j in range(K) if j != i) for i in range(K)]
    found = follow(run)
    assert losses[0] < losses[1] < losses[2]
    assert found["errors"].tolist() == pytest.approx([0.1, 0.025, 0.025])
    assert found["shares"].tolist() == [0.0, 1.0, 0.0]
    assert run.step(run.scheme.stages[0].phases[0]).gaps.tolist() == pytest.approx([0.1, 0.025, 0.025])
    by_loss, fresh = BestSingle(by="loss"), run.batch._replace(carried={"elsewhere": torch.zeros(K).double()})
    with torch.no_grad():
        chosen = by_loss.after_step(run.parts, fresh, by_loss.stages[0].phases[0])
    assert chosen["shares"].tolist() == [1.0, 0.0, 0.0]


def test_regression_chooses_by_loss() -> None:
    carried = BestSingle().carry(started(BestSingle()).parts, Sizes((4, 4), 4, 5, 1), Stage("all"))
    assert set(carried) == {"elsewhere", "shares"}
