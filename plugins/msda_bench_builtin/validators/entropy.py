"""The uncertainty of the model on the target."""

from __future__ import annotations

import torch

from msda_bench.api import ValidationView, Validator, component
from msda_bench_builtin.validators.losses import probabilities


@component
class Entropy(Validator):
    """Minus the mean entropy of the predictions on the target, in nats; 0 for a model that is certain of everything.

    Morerio, Cavazza, Murino. Minimal-entropy correlation alignment for unsupervised deep domain adaptation. ICLR, 2018.
    """

    name = "entropy"
    tasks = ("classification",)
    needs_sources = False

    def score(self, view: ValidationView) -> float:
        """Minus the mean of -sum_c p_c log p_c."""
        return -float(torch.special.entr(probabilities(view.target_outputs)).sum(-1).mean())
