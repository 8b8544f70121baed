"""How the learning rate changes over the steps of a run, and averages of its weights over them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from msda_bench.suite.protocol import Averaged, Protocol


def lr_shares(training: Protocol, steps: int) -> list[float] | None:
    """The share of the learning rate in each of a run's steps; None if it is always the whole.

    In the w steps of warm-up the share is (i + 1) / (w + 1) at step i, from 0; the schedule runs over the rest.

    Args:
        training: the protocol.
        steps: all steps of the run, or of the stages that have a schedule of their own.
    """
    if training.schedule.name == "none" and not training.warmup:
        return None
    warm = min(steps, round(training.warmup * steps) if training.warmup < 1 else int(training.warmup))
    share = _schedule(training.schedule.name, training.schedule.params)
    rising = [(step + 1) / (warm + 1) for step in range(warm)]
    return rising + [share(step / (steps - warm)) for step in range(steps - warm)]


def _schedule(name: str, given: dict[str, Any]) -> Callable[[float], float]:
    """The function from progress, which is 0 in the first step and approaches 1, to the share."""
    match name:
        case "none":
            return lambda _: 1.0
        case "cosine":
            return lambda progress: given["to"] + (1 - given["to"]) * (1 + math.cos(math.pi * progress)) / 2
        case "polynomial":
            return lambda progress: float((1 + given["a"] * progress) ** -given["b"])
    raise ValueError(f"unknown schedule {name!r}")


class Average:
    """Averages tensors over steps: each of the last epoch's worth as much, or by an exponential moving average.

    Args:
        kind: which of the two.
        tensors: what is averaged, as it is after each step: weights, and buffers such as batch-norm's statistics.
        steps: in an epoch.
        all_steps: in the run.
        since: the first step that may count.
    """

    def __init__(self, kind: Averaged, tensors: Sequence[Tensor], steps: int, all_steps: int, since: int = 0) -> None:
        self._decay = kind.ema
        self._tensors = [tensor.detach() for tensor in tensors]
        self._first = max(since, all_steps - steps) if self._decay is None else since
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
