"""Averages a run's weights over its steps; the average is tested in place of the last weights."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from msda_bench.suite.protocol import Averaged


class Average:
    """Averages tensors over steps: each of the last epoch's worth as much, or by an exponential moving average.

    Args:
        kind: which of the two.
        tensors: what is averaged, as it is after each step: weights, and buffers such as batch-norm's statistics.
        steps: in an epoch.
        all_steps: in the run.
    """

    def __init__(self, kind: Averaged, tensors: Sequence[Tensor], steps: int, all_steps: int) -> None:
        self._decay = kind.ema
        self._tensors = [tensor.detach() for tensor in tensors]
        self._first = max(0, all_steps - steps) if self._decay is None else 0
        self._means: list[Tensor] = []
        self._seen = 0

    @torch.no_grad()
    def after(self, step: int) -> None:
        """Takes in the tensors after a step, counted from 0 over the whole run."""
        if step < self._first:
            return
        self._seen += 1
        if not self._means:
            self._means = [tensor.clone() for tensor in self._tensors]
            return
        weight = 1 / self._seen if self._decay is None else 1 - self._decay
        torch._foreach_lerp_(self._means, self._tensors, weight)

    @torch.no_grad()
    def put(self) -> None:
        """Replaces the tensors by their averages."""
        for tensor, mean in zip(self._tensors, self._means, strict=bool(self._means)):
            tensor.copy_(mean)
