"""Trains a program to the end of its epochs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from msda_bench.api import PluginError
from msda_bench.engine.loop import Loop
from msda_bench.engine.program import Program
from msda_bench.engine.runs import Run
from msda_bench.engine.streams import seeded
from msda_bench.engine.trace import Trace
from msda_bench.suite.cell import Cell


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
    steps = [loop.steps_until(loop.epochs if last is None else last) for last in diverged]
    return [Trained(*one) for one in zip(traces, steps, diverged, strict=True)]


def _by_run(seen: Tensor, program: Program) -> Sequence[Tensor]:
    return seen.unbind(1) if program.lead else [seen]


def _close(trace: Trace, seen: Tensor, cell: Cell) -> bool:
    try:
        return trace.close_epoch(seen)
    except ValueError as error:
        ref = cell.aggregator or cell.scheme
        raise PluginError(f"{ref.kind} {ref.name!r} of {ref.distribution} left the simplex: {error}") from error
