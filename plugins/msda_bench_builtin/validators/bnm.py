"""Batch nuclear norm."""

from __future__ import annotations

import math

import torch

from msda_bench.api import ValidationView, Validator, component
from msda_bench_builtin.validators.losses import probabilities


@component
class Bnm(Validator):
    """Nuclear norm of the target's predictions, relative to its maximum: high if they are confident and diverse.

    For n predictions of C classes the norm is at most sqrt(n min(n, C)), reached if all are confident and every class
    is equally frequent; confident predictions of a single class give 1 / sqrt(C). All of the target's training examples
    form one batch, as in the study of Musgrave, Belongie and Lim (2022).

    Cui, Wang, Zhuo, Li, Huang, Tian. Towards discriminability and diversity: batch nuclear-norm maximization under
    label insufficient situations. CVPR, 2020.
    """

    name = "bnm"
    tasks = ("classification",)
    needs_sources = False

    def score(self, view: ValidationView) -> float:
        """The sum of the singular values, as a share of the maximum, in (0, 1]."""
        p = probabilities(view.target_outputs)
        return float(torch.linalg.svdvals(p).sum()) / math.sqrt(len(p) * min(p.shape))
