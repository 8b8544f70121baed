"""Trains a program to the end of its epochs, and summarises risks, gaps and weights once an epoch."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from msda_bench.api import PluginError
from msda_bench.engine.loop import Loop
from msda_bench.engine.model import batch_norms, restored_momenta
from msda_bench.engine.runs import Run
from msda_bench.engine.settings import seeded
from msda_bench.engine.stacked import Program
from msda_bench.engine.tensors import batch_of, chunk, where_rows
from msda_bench.store.record import Curves

DECAY = 0.9
"""Decay of the weights' moving average over the steps (paper, figure of the weights)."""
TOLERANCE = 1e-3
"""How far rounding may take the weights of a step from the simplex."""


class TrainingResult:
    """One run's training.

    Attributes:
        curves: risks, gaps and weights of the epochs so far.
        weights: (k,) float64, the average at the end of the last epoch; empty before the first.
        steps: steps to the end of training, or of the epoch in which it diverged.
        diverged_in: the epoch, from 1, in which a risk, gap or weight was not finite, or None.
    """

    def __init__(self, run: Run) -> None:
        self.curves = Curves([list(group) for group in run.groups], [], [], [])
        self.weights = torch.zeros(0, dtype=torch.float64)
        self.steps = 0
        self.diverged_in: int | None = None
        self._weighing = run.cell.aggregator or run.cell.scheme

    @property
    def divergence(self) -> str:
        """How training diverged, in words that follow a colon."""
        return f"a risk, gap or weight was not finite in epoch {self.diverged_in}"

    def close_epoch(self, seen: Tensor) -> None:
        """Summarises an epoch, unless a risk, gap or weight of it was not finite: (steps, 3, k) float64 on the host.

        Raises:
            PluginError: the weights of a step are not on the simplex.
        """
        if not bool(seen.isfinite().all()):
            self.diverged_in = len(self.curves.risks) + 1
            return
        weights = seen[:, 2]
        sums = weights.sum(1)
        if weights.min() < -TOLERANCE or (sums - 1).abs().max() > TOLERANCE:
            ref = self._weighing
            raise PluginError(
                f"{ref.kind} {ref.name!r} of {ref.distribution} left the simplex: weights from {weights.min():g} to "
                f"{weights.max():g}, sums {sums.min():g} to {sums.max():g}"
            )
        before = self.weights if len(self.weights) else weights[0]
        age = torch.arange(len(weights) - 1, -1, -1, dtype=torch.float64)
        recency = ((1 - DECAY) * DECAY**age).unsqueeze(1)
        # The recursion a <- 0.9 a + 0.1 w, unrolled over the epoch's steps.
        self.weights = before * DECAY ** len(weights) + (recency * weights).sum(0)
        self.curves.risks.append(_compact(seen[:, 0].mean(0)))
        self.curves.gaps.append(_compact(seen[:, 1].mean(0)))
        self.curves.weights.append(_compact(self.weights))


def _compact(values: Tensor) -> list[float]:
    return [float(f"{value:.6g}") for value in values.tolist()]


def fit(runs: Sequence[Run], program: Program) -> list[TrainingResult]:
    """Trains the runs of a program; in a stack, one that diverges does not affect the others.

    Raises:
        PluginError: a component breaks its contract.
    """
    loop = Loop(runs, program)
    results = [TrainingResult(run) for run in runs]
    # Our own draws never use torch's generator; seeding it makes third-party layers repeatable, too.
    with seeded(runs[0].cell, "global generator", program.y.device):
        for epoch in range(loop.epochs):
            seen = loop.epoch(epoch)
            of_runs = seen.unbind(1) if program.lead else [seen]
            for result, of_run in zip(results, of_runs, strict=True):
                if result.diverged_in is None:
                    result.steps += len(of_run)
                    result.close_epoch(of_run)
            if all(result.diverged_in is not None for result in results):
                break
        loop.finish()
        if runs[0].components.scheme.target_statistics:
            _take_target_statistics(runs, program)
    return results


@torch.no_grad()
def _take_target_statistics(runs: Sequence[Run], program: Program) -> None:
    """Replaces batch normalisation's running statistics by those of the target's training inputs, layer by layer.

    All else is in evaluation mode. The inputs pass in equal parts, whose statistics are averaged; each part is
    normalised by its own. Layers that keep their statistics in training keep them here, and so do all if the target has
    one example, whose variance is not known. All runs have as many examples of the target.
    """
    modules = program.modules
    norms = [norm for norm in batch_norms(modules) if norm.training]
    rows = runs[0].target_rows
    if program.lead:
        rows = torch.stack([run.target_rows for run in runs])
    rows = rows + program.row_offsets[..., None]
    total = rows.shape[-1]
    if not norms or total == 1:
        return
    modules.eval()
    seen = 0
    size = max(2, chunk(program.x))
    with restored_momenta(norms):
        for part in rows.tensor_split(max(1, total // size), dim=-1):
            seen += part.shape[-1]
            for norm in norms:
                norm.train()
                norm.momentum = part.shape[-1] / seen
            x = program.augment(batch_of(program.x, where_rows(program.x, part)))
            program.call(lambda scheme, parts, *given: scheme.predict(parts, *given), x, program.state)
    modules.train()
