"""Scores of held-out source examples, and the losses of rows."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from msda_bench.api import Task, ValidationView, Validator, component


def losses(task: Task, outputs: Tensor, labels: Tensor) -> Tensor:
    """The loss of each example: cross-entropy in nats, or the squared error for regression.

    Args:
        task: the task.
        outputs: (n, task.outputs), of any floating type, anywhere.
        labels: (n,).

    Returns:
        (n,) float64 on the CPU.
    """
    outputs = outputs.detach().double().cpu()
    labels = labels.cpu()
    return task.rules.losses(outputs, labels)


def probabilities(outputs: Tensor) -> Tensor:
    """The predicted probabilities of (n, classes) logits, float64 on the CPU."""
    return outputs.detach().double().cpu().softmax(-1)


@component
class SourceRisk(Validator):
    """Minus the risk on held-out source examples, each source counting equally.

    The risk is the cross-entropy in nats, or the squared error for regression.
    """

    name = "source_risk"

    def score(self, view: ValidationView) -> float:
        """Minus the mean over the sources of the mean loss."""
        classify = view.task.has_classes
        pairs = zip(view.source_outputs, view.source_labels, strict=True)
        risks = [_risk(outputs.double(), labels, classify=classify) for outputs, labels in pairs]
        return -sum(risks) / len(risks)


def _risk(outputs: Tensor, labels: Tensor, *, classify: bool) -> float:
    if classify:
        return functional.cross_entropy(outputs, labels).item()
    return functional.mse_loss(outputs.squeeze(-1), labels.double()).item()


@component
class SourceAccuracy(Validator):
    """Accuracy on held-out source examples, each source counting equally; in [0, 1]."""

    name = "source_accuracy"
    tasks = ("classification",)

    def score(self, view: ValidationView) -> float:
        """The mean over the sources of the fraction classified correctly."""
        pairs = zip(view.source_outputs, view.source_labels, strict=True)
        accuracies = [(outputs.argmax(-1) == labels).double().mean().item() for outputs, labels in pairs]
        return sum(accuracies) / len(accuracies)
