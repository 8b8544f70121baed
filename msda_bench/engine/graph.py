"""A phase of a step on a GPU, update included: recorded once as a CUDA graph, then replayed with one request.

The step of a small network takes as long as the host needs to ask for its hundreds of operations; a graph asks once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor

from msda_bench.api import Batch, Phase, Step
from msda_bench.engine import machine
from msda_bench.engine.runs import Run

Take: TypeAlias = Callable[[Batch, Tensor, Tensor, Phase], Step]
"""A phase's results from its batch, the keys of its modules and the aggregator's state; weights change."""

WARM = 3
"""Steps of each phase before it is recorded: in the first ones libraries choose kernels and ask for memory."""


def can_replay(run: Run, device: torch.device) -> bool:
    """Whether a run's phases read nothing but their tensors, so that a graph has all that changes from step to step.

    It is known of what stacks and is of this package, each tested on a GPU. A layer from elsewhere may count its calls,
    unless its component says that it is `capturable`. An aggregator builds no layers, so it may be anyone's.
    """
    cell, made = run.cell, run.components
    used = (cell.backbone, made.backbone), (cell.scheme, made.scheme), (cell.discrepancy, made.discrepancy)
    known = all(
        ref is None or part is None or part.capturable or (part.stackable and ref.distribution == "msda-bench")
        for ref, part in used
    )
    return machine.records_updates(device) and known and (made.aggregator is None or made.aggregator.stackable)


class Replayed:
    """Takes phases as `take` does, from the fourth step on by replaying a graph.

    What cannot be recorded, because it reads a number on the host, goes on without a graph. `take` must be a function
    of its tensors: whatever else it reads stays as it was when the graph was recorded.

    Args:
        take: on the device's tensors alone, weights among them; it may change these.
        device: the GPU.
    """

    def __init__(self, take: Take, device: torch.device) -> None:
        self._take = take
        self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self._taken: Counter[str] = Counter()
        self._graphs: dict[str, tuple[torch.cuda.CUDAGraph, list[Tensor], Step] | None] = {}

    def __call__(self, batch: Batch, keys: Tensor, state: Tensor, phase: Phase) -> Step:
        """One phase of a step; its results are valid until the same phase of the next."""
        if self._taken[phase.name] < WARM:
            self._taken[phase.name] += 1
            return self._beside(batch, keys, state, phase)
        if phase.name not in self._graphs:
            try:
                self._graphs[phase.name] = self._recorded(batch, keys, state, phase)
            except RuntimeError:
                self._graphs[phase.name] = None
        recorded = self._graphs[phase.name]
        if recorded is None:
            return self._take(batch, keys, state, phase)
        graph, given, step = recorded
        torch._foreach_copy_(given, _tensors(batch, keys, state))
        graph.replay()
        return step

    def _beside(self, batch: Batch, keys: Tensor, state: Tensor, phase: Phase) -> Step:
        """On the stream of the recording, as torch asks for before one."""
        current = torch.cuda.current_stream(self._stream.device)
        self._stream.wait_stream(current)
        with torch.cuda.stream(self._stream):
            step = self._take(batch, keys, state, phase)
        current.wait_stream(self._stream)
        return step

    def _recorded(
        self, batch: Batch, keys: Tensor, state: Tensor, phase: Phase
    ) -> tuple[torch.cuda.CUDAGraph, list[Tensor], Step]:
        """The graph of a phase, the tensors that it reads, and the results that it writes."""
        given = [value.clone() for value in _tensors(batch, keys, state)]
        x, y, key, progress, rows, fixed_keys, fixed_state, *values = given
        fixed = Batch(x, y, key, progress, rows, dict(zip(batch.carried, values, strict=True)))
        inputs = {value.untyped_storage().data_ptr() for value in given}

        def owned(value: Tensor) -> Tensor:
            """Without a gradient, and not in the memory of an input, which the next replay overwrites."""
            value = value.detach()
            return value.clone() if value.untyped_storage().data_ptr() in inputs else value

        graph = torch.cuda.CUDAGraph()
        # Other threads may use the GPU meanwhile.
        with torch.cuda.graph(graph, stream=self._stream, capture_error_mode="thread_local"):
            taken = self._take(fixed, fixed_keys, fixed_state, phase)
            objective, risks, gaps, weights, state = map(owned, taken[:-1])
            step = Step(
                objective, risks, gaps, weights, state, {name: owned(value) for name, value in taken.carried.items()}
            )
        return graph, given, step


def _tensors(batch: Batch, keys: Tensor, state: Tensor) -> list[Tensor]:
    values = batch.x, batch.y, batch.key, batch.progress, batch.rows, keys, state, *batch.carried.values()
    return [torch.as_tensor(value) for value in values]
