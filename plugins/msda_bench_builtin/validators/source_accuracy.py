"""Accuracy on the sources."""

from __future__ import annotations

from msda_bench.api import ValidationView, Validator, component


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
