"""The view of a run's test that a metric gets."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from msda_bench.api import Tested
from msda_bench.store.record import Outcome


def view_of(outcome: Outcome, outputs: Tensor | None = None, labels: Tensor | None = None) -> Tested:
    """The test of a record, with its outputs (n, outputs) and labels (n,) for a metric that needs them."""
    sums = ("sum_squared_error", "sum_absolute_error", "sum_labels", "sum_squared_labels")
    known = {name: getattr(outcome, name) for name in sums}
    return Tested(
        n=outcome.n_test,
        confusion=torch.tensor(outcome.confusion or (), dtype=torch.int64).reshape(-1, 3),
        **{name: math.nan if value is None else value for name, value in known.items()},
        outputs=torch.zeros(0, 1) if outputs is None else outputs.cpu().clone(),
        labels=torch.zeros(0) if labels is None else labels.cpu().clone(),
    )
