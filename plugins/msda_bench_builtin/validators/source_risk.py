"""Risk on the sources."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from msda_bench.api import ValidationView, Validator, component


@component
class SourceRisk(Validator):
    """Minus the risk on held-out source examples, each source counting equally.

    The risk is the cross-entropy in nats, or the squared error for regression.
    """

    name = "source_risk"

    def score(self, view: ValidationView) -> float:
        """Minus the mean over the sources of the mean loss."""
        classify = view.task.kind == "classification"
        pairs = zip(view.source_outputs, view.source_labels, strict=True)
        risks = [_risk(outputs.double(), labels, classify=classify) for outputs, labels in pairs]
        return -sum(risks) / len(risks)


def _risk(outputs: Tensor, labels: Tensor, *, classify: bool) -> float:
    if classify:
        return functional.cross_entropy(outputs, labels).item()
    return functional.mse_loss(outputs.squeeze(-1), labels.double()).item()
