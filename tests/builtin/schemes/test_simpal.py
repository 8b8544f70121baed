"""SImpAl agrees with plain loops."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from msda_bench_builtin.schemes import Simpal
from tests.builtin.gradients import same_gradient
from tests.builtin.schemes.small_run import B, K, SmallRun


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


def test_the_test_averages_probabilities() -> None:
    run = SmallRun(Simpal())
    _, outputs = run.scheme.predict(run.parts, run.x[-B:], {})
    assert torch.allclose(outputs.exp(), sum(one.softmax(1) for one in logits(run, K)) / K)
