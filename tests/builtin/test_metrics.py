"""Metrics agree with scikit-learn."""

from __future__ import annotations

import math

import pytest
import torch
from sklearn import metrics as sk

from msda_bench.api import Task
from msda_bench.engine.evaluate import test_outcome as outcome_of
from msda_bench.engine.evaluate import view_of
from msda_bench.plugins import discover

CLASSES = 5


def value(name: str, outputs: torch.Tensor, labels: torch.Tensor, task: Task) -> float:
    outcome = outcome_of(outputs, task, labels)
    assert outcome is not None
    metric = discover().entry("metric", name).create({})
    shown = (outputs, labels) if metric.needs_outputs else ()
    return metric.value(view_of(outcome, *shown))


@pytest.mark.parametrize("seed", range(3))
def test_classification_metrics_equal_scikit_learns(seed: int) -> None:
    draws = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, CLASSES, (200,), generator=draws) // 2 * 2  # classes that the test does not have
    outputs = torch.randn(200, CLASSES, generator=draws) + 1.5 * torch.nn.functional.one_hot(labels, CLASSES)
    outputs[:20] = outputs[20]  # ties
    predicted, task = outputs.argmax(-1), Task("classification", CLASSES)
    assert value("accuracy", outputs, labels, task) == pytest.approx(sk.accuracy_score(labels, predicted))
    expected = sum(sk.recall_score(labels, predicted, labels=[c], average="macro") for c in labels.unique().tolist())
    assert value("balanced_accuracy", outputs, labels, task) == pytest.approx(expected / len(labels.unique()))
    assert value("macro_f1", outputs, labels, task) == pytest.approx(sk.f1_score(labels, predicted, average="macro"))
    shares = outputs.double().softmax(-1)
    areas = [sk.roc_auc_score(labels == c, shares[:, c]) for c in labels.unique().tolist()]
    assert value("auc", outputs, labels, task) == pytest.approx(sum(areas) / len(areas))


def test_regression_metrics_equal_scikit_learns() -> None:
    labels, outputs = torch.randn(2, 80, generator=torch.Generator().manual_seed(0))
    for name, other in (("mse", sk.mean_squared_error), ("mae", sk.mean_absolute_error), ("r2", sk.r2_score)):
        assert value(name, outputs.unsqueeze(-1), labels, Task("regression")) == pytest.approx(other(labels, outputs))


def test_r2_is_undefined_for_equal_labels_despite_rounding() -> None:
    labels = torch.full((333,), 0.1)
    assert math.isnan(value("r2", torch.zeros(333, 1), labels, Task("regression")))
    labels[0] = 0.2
    assert value("r2", torch.zeros(333, 1), labels, Task("regression")) < 0
