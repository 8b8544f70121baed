"""Losses and probabilities of predictions, example by example, in float64 on the CPU."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from msda_bench.api import Task


def losses(task: Task, outputs: Tensor, labels: Tensor) -> Tensor:
    """The loss of each example: cross-entropy in nats, or the squared error for regression.

    Args:
        task: the task.
        outputs: (n, task.outputs), of any floating type, anywhere.
        labels: (n,).

    Returns:
        (n,) float64 on the CPU.
    """
    outputs, labels = outputs.detach().double().cpu(), labels.cpu()
    if task.kind == "classification":
        return functional.cross_entropy(outputs, labels, reduction="none")
    return (outputs.squeeze(-1) - labels.double()).square()


def probabilities(outputs: Tensor) -> Tensor:
    """The predicted probabilities of (n, classes) logits, float64 on the CPU."""
    return outputs.detach().double().cpu().softmax(-1)
