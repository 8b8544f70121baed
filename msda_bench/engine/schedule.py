"""How the learning rate changes over the steps of a run."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from msda_bench.suite.protocol import Protocol


def lr_shares(training: Protocol, steps: int) -> list[float] | None:
    """The share of the learning rate in each of a run's steps; None if it is always the whole.

    In the w steps of warm-up the share is (i + 1) / (w + 1) at step i, from 0; the schedule runs over the rest.

    Args:
        training: the protocol.
        steps: all steps of the run.
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
        case "step":
            places: Sequence[float] = given["at"]
            return lambda progress: float(given["factor"]) ** sum(progress >= place for place in places)
        case "cosine":
            return lambda progress: given["to"] + (1 - given["to"]) * (1 + math.cos(math.pi * progress)) / 2
        case "polynomial":
            return lambda progress: float((1 + given["a"] * progress) ** -given["b"])
    raise ValueError(f"unknown schedule {name!r}")
