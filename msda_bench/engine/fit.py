"""Trains a program to the end of its epochs, and summarises risks, gaps and weights once an epoch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from msda_bench.api import Group, PluginError
from msda_bench.engine.loop import Loop
from msda_bench.engine.program import Program
from msda_bench.engine.runs import Run
from msda_bench.engine.settings import seeded
from msda_bench.engine.statistics import take_target_statistics
from msda_bench.store.record import Curves
from msda_bench.suite.cell import Cell

DECAY = 0.9
"""Decay of the weights' moving average over the steps (paper, figure of the weights)."""


TOLERANCE = 1e-3
"""How far rounding may take the weights of a step from the simplex."""


class Trace:
    """Summarises the risks, gaps and weights of one run.

    Args:
        groups: the labelled groups.
    """

    def __init__(self, groups: tuple[Group, ...]) -> None:
        self._curves = Curves([list(group) for group in groups], [], [], [])
        self._average: Tensor | None = None

    def close_epoch(self, seen: Tensor) -> bool:
        """Summarises an epoch; False if a risk, gap or weight of it was not finite.

        Args:
            seen: (steps, 3, k) float64 on the host: risks, gaps and weights of each step.

        Raises:
            ValueError: the weights of a step are not on the simplex.
        """
        if not bool(seen.isfinite().all()):
            return False
        weights = seen[:, 2]
        sums = weights.sum(1)
        if weights.min() < -TOLERANCE or (sums - 1).abs().max() > TOLERANCE:
            raise ValueError(
                f"weights from {weights.min():g} to {weights.max():g}, sums {sums.min():g} to {sums.max():g}"
            )
        before = weights[0] if self._average is None else self._average
        age = torch.arange(len(weights) - 1, -1, -1, dtype=torch.float64)
        recency = ((1 - DECAY) * DECAY**age).unsqueeze(1)
        # The recursion a <- 0.9 a + 0.1 w, unrolled over the epoch's steps.
        self._average = before * DECAY ** len(weights) + (recency * weights).sum(0)
        self._curves.risks.append(_compact(seen[:, 0].mean(0)))
        self._curves.gaps.append(_compact(seen[:, 1].mean(0)))
        self._curves.weights.append(_compact(self._average))
        return True

    @property
    def curves(self) -> Curves:
        """The epochs so far."""
        return self._curves

    @property
    def weights(self) -> Tensor:
        """(k,) float64, the average at the end of the last epoch; raises `ValueError` before the first."""
        if self._average is None:
            raise ValueError("no epoch is closed yet")
        return self._average


def _compact(values: Tensor) -> list[float]:
    return [float(f"{value:.6g}") for value in values.tolist()]


@dataclass(frozen=True)
class Trained:
    """One run's training.

    Attributes:
        trace: its curves.
        steps: steps to the end of training, or of the epoch in which it diverged.
        diverged_in: the epoch, from 1, in which a risk, gap or weight was not finite, or None.
    """

    trace: Trace
    steps: int
    diverged_in: int | None


def fit(runs: Sequence[Run], program: Program) -> list[Trained]:
    """Trains the runs of a program; in a stack, one that diverges does not affect the others.

    Raises:
        PluginError: a component breaks its contract.
    """
    loop = Loop(runs, program)
    traces = [Trace(run.groups) for run in runs]
    diverged: list[int | None] = [None] * len(runs)
    first = runs[0].cell
    # Our own draws never use torch's generator; seeding it makes third-party layers repeatable, too.
    with seeded(first, "global generator", program.y.device):
        for epoch in range(loop.epochs):
            seen = loop.epoch(epoch)
            for place, part in enumerate(_by_run(seen, program)):
                if diverged[place] is None and not _close(traces[place], part, runs[place].cell):
                    diverged[place] = epoch + 1
            if None not in diverged:
                break
        loop.finish()
        if runs[0].components.scheme.target_statistics:
            take_target_statistics(runs, program)
    steps = [loop.steps_until(loop.epochs if last is None else last) for last in diverged]
    return [Trained(*result) for result in zip(traces, steps, diverged, strict=True)]


def _by_run(seen: Tensor, program: Program) -> Sequence[Tensor]:
    return seen.unbind(1) if program.lead else [seen]


def _close(trace: Trace, seen: Tensor, cell: Cell) -> bool:
    try:
        return trace.close_epoch(seen)
    except ValueError as error:
        ref = cell.aggregator or cell.scheme
        raise PluginError(f"{ref.kind} {ref.name!r} of {ref.distribution} left the simplex: {error}") from error
