"""Schemes of several models or classifiers agree with plain loops."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import combinations

import pytest
import torch
from torch import Tensor, nn

from msda_bench.api import PluginError, Scheme, Sizes, Stage
from msda_bench_builtin.schemes import BestSingle, Ensemble, M3sda, Mcd, Mfsan, Simpal
from tests.builtin.formulas import B, K, SmallRun, same_gradient

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


@pytest.mark.parametrize(("k", "progress", "rho"), [(1, 1.0, 10.0), (K, 0.0, 10.0), (K, 0.2, 5.0), (K, 0.2, None)])
def test_mfsan_equals_plain_loops(k: int, progress: float, rho: float | None) -> None:
    run = SmallRun(Mfsan(ramp=rho), k=k)
    run.batch = run.batch._replace(progress=torch.tensor(progress))
    taken = run.step(run.scheme.stages[0].phases[0])
    risks = [nn.functional.cross_entropy(branch(run, i, i)[1], run.batch.y[i]) for i in range(k)]
    gaps = [mmd(branch(run, i, i)[0], branch(run, i, k)[0], 5) for i in range(k)]
    answers = [branch(run, i, k)[1].softmax(1) for i in range(k)]
    pairs = [(answers[i] - answers[j]).abs().mean() for i, j in combinations(range(k), 2)]
    ramp = 1.0 if rho is None else 2 / (1 + math.exp(-rho * progress)) - 1
    expected = torch.stack(risks).mean() + run.mu * ramp * (sum(gaps) / k + sum(pairs) / max(1, len(pairs)))
    assert taken.risks.tolist() == pytest.approx([risk.item() for risk in risks])
    assert taken.gaps.tolist() == pytest.approx([gap.item() for gap in gaps], rel=1e-4)
    assert taken.weights.tolist() == [1 / k] * k
    assert taken.objective.item() == pytest.approx(expected.item(), rel=1e-6)
    same_gradient(taken.objective, expected, run.trained(run.scheme.stages[0].phases[0]))


def test_an_update_a_source_has_that_sources_terms_alone() -> None:
    """As in the authors' loop: risk, MMD and mean distance from the other classifiers; together the joint objective."""
    run, joint = SmallRun(Mfsan(ramp=None, turns=K)), SmallRun(Mfsan(ramp=None))
    (stage,) = run.scheme.stages
    answers = [branch(run, i, K)[1].softmax(1) for i in range(K)]
    for i, phase in enumerate(stage.phases):
        risk = nn.functional.cross_entropy(branch(run, i, i)[1], run.batch.y[i])
        gap = mmd(branch(run, i, i)[0], branch(run, i, K)[0], 5)
        apart = sum((answers[i] - answers[j]).abs().mean() for j in range(K) if j != i) / (K - 1)
        same_gradient(run.step(phase).objective, risk + run.mu * (gap + apart), run.trained(phase))
    mean = sum(run.step(phase).objective for phase in stage.phases) / K
    assert mean.item() == pytest.approx(joint.step(joint.scheme.stages[0].phases[0]).objective.item())
    assert run.scheme.updates == K
    with pytest.raises(PluginError, match="has turns: 4, but 3 sources; set at most 3"):
        SmallRun(Mfsan(turns=K + 1))


def test_mfsan_averages_probabilities() -> None:
    run = SmallRun(Mfsan())
    features, outputs = run.scheme.predict(run.parts, run.x[-B:], {})
    mean = sum(branch(run, i, K)[1].softmax(1) for i in range(K)) / K
    assert torch.allclose(outputs.exp(), mean)
    assert torch.equal(features, run.domain(K))


def logits(run: SmallRun, domain: int) -> list[Tensor]:
    """The logits of each classifier."""
    return [head(run.domain(domain)) for head in run.modules["critic"].of]


def adapting() -> SmallRun:
    """A run in the second stage, whose classifiers agree on some of the target's four examples."""
    run = SmallRun(Simpal())
    with torch.no_grad():
        first, *others = run.modules["critic"].of
        for head in others:
            head.weight.add_(first.weight, alpha=3.0)
    run.enter(run.scheme.stages[1])
    return run


def agreed_labels(run: SmallRun) -> list[int | None]:
    """The class on which all classifiers agree, example by example."""
    votes = zip(*(answers.argmax(1).tolist() for answers in logits(run, K)), strict=True)
    return [classes[0] if len(set(classes)) == 1 else None for classes in votes]


def test_labels_are_classes_on_which_all_classifiers_agree() -> None:
    run = adapting()
    expected = agreed_labels(run)
    assert 0 < expected.count(None) < B  # the test needs both kinds
    agreed = run.batch.carried["agreed"].tolist()
    assert agreed == [float(label is not None) for label in expected]
    for label, found in zip(expected, run.batch.carried["labels"].tolist(), strict=True):
        assert label is None or label == found


@pytest.mark.parametrize("stage", [0, 1])
def test_every_classifier_learns_every_source(stage: int) -> None:
    run = adapting() if stage else SmallRun(Simpal())
    if not stage:
        run.enter(run.scheme.stages[0])
    phase = run.scheme.stages[stage].phases[0]
    taken = run.step(phase)
    losses = [[nn.functional.cross_entropy(one, run.batch.y[i]) for one in logits(run, i)] for i in range(K)]
    assert taken.risks.tolist() == pytest.approx([torch.stack(own).mean().item() for own in losses])
    expected = torch.stack([loss for own in losses for loss in own]).mean()
    assert taken.objective.item() == pytest.approx(expected.item())
    same_gradient(taken.objective, expected, run.trained(phase))
    assert taken.gaps.tolist() == pytest.approx([agreed_labels(run).count(None) / B * stage] * K)


def test_the_target_is_learned_from_agreed_labels() -> None:
    run = adapting()
    phase = run.scheme.stages[1].phases[1]
    # Examples come in another order than that in which they were labelled.
    order = torch.tensor([2, 0, 3, 1])
    x = torch.cat([run.x[: K * B], run.x[K * B :][order]])
    labels = agreed_labels(run)
    run.batch = run.batch._replace(x=x, rows=torch.cat([run.batch.rows[: K * B], order]))
    losses = [
        nn.functional.cross_entropy(head(run.domain(K)[i : i + 1]), torch.tensor([label]))
        for head in run.modules["critic"].of
        for i, label in enumerate(labels)
        if label is not None
    ]
    taken = run.step(phase)
    expected = torch.stack(losses).mean()
    assert taken.objective.item() == pytest.approx(expected.item())
    same_gradient(taken.objective, expected, run.trained(phase))


def test_a_batch_without_agreement_adds_nothing() -> None:
    run = adapting()
    run.batch = run.batch._replace(carried={**run.batch.carried, "agreed": torch.zeros(B)})
    phase = run.scheme.stages[1].phases[1]
    gradients = torch.autograd.grad(run.step(phase).objective, run.trained(phase))
    assert not any(bool(gradient.any()) for gradient in gradients)


def test_simpal_averages_probabilities() -> None:
    run = SmallRun(Simpal())
    _, outputs = run.scheme.predict(run.parts, run.x[-B:], {})
    assert torch.allclose(outputs.exp(), sum(one.softmax(1) for one in logits(run, K)) / K)


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


def test_domains_with_equal_features_have_finite_gradients() -> None:
    run = SmallRun(M3sda())
    run.batch = run.batch._replace(x=run.x[:B].repeat(K + 1, 1))
    taken = run.step(run.scheme.stages[0].phases[0])
    torch.autograd.backward(taken.objective)
    assert taken.gaps.tolist() == [0.0] * K
    assert all(bool(value.grad.isfinite().all()) for value in run.modules.parameters())  # type: ignore[union-attr]
