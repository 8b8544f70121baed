"""Steps on a GPU, updates included: recorded once as a CUDA graph, then replayed with one request.

The step of a small network takes as long as the host needs to ask for its hundreds of operations; a graph asks once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch
from torch import Tensor

from msda_bench.api import Component
from msda_bench.engine import machine
from msda_bench.engine.runs import Run

StepFunction: TypeAlias = Callable[[Sequence[Tensor]], list[Tensor]]
"""The results of some steps from the tensors that change from step to step; weights change."""
_Recording: TypeAlias = tuple[torch.cuda.CUDAGraph, list[Tensor], list[Tensor]]
"""The graph of a block, the tensors that it reads, and the results that it writes."""

WARM = 3
"""Blocks of steps before one is recorded: in the first ones libraries choose kernels and ask for memory."""
AT_ONCE = 1
"""Steps in a block, if nothing happens between them; more than one is not measured yet."""


def can_replay(run: Run, device: torch.device) -> bool:
    """Whether a run's steps read nothing but their tensors, so that a graph has all that changes from one to the next.

    That is known of components of this package that stack, which are tested on a GPU. A layer from elsewhere may count
    its calls, unless its component says that it is `capturable`. An aggregator builds no layers, so it may be anyone's.
    """
    if not machine.records_updates(device):
        return False
    cell = run.cell
    made = run.components
    if made.aggregator is not None and not made.aggregator.stackable:
        return False
    used = [
        (cell.backbone, made.backbone),
        (cell.scheme, made.scheme),
        (cell.discrepancy, made.discrepancy),
    ]
    return all(ref is None or part is None or _is_known(part, ref.distribution) for ref, part in used)


def _is_known(component: Component, distribution: str) -> bool:
    """Whether a component keeps nothing in Python, as its author or our tests say."""
    return component.capturable or (component.stackable and distribution == "msda-bench")


class Replayed:
    """Takes blocks of steps as `steps` does, from the fourth block of a length on by replaying a graph.

    Steps that cannot be recorded, because they read a number on the host, continue without a graph. `steps` must be a
    function of its tensors: whatever else it reads stays as it was when the graph was recorded.

    Args:
        steps: on the device's tensors alone, weights among them; it may change these.
        device: the GPU.
    """

    def __init__(self, steps: StepFunction, device: torch.device) -> None:
        self._steps = steps
        self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self._taken: Counter[int] = Counter()
        self._graphs: dict[int, _Recording | None] = {}

    def __call__(self, given: Sequence[Tensor]) -> list[Tensor]:
        """One block, of the first tensor's length; its results are valid until the next of this length."""
        length = len(given[0])
        if self._taken[length] < WARM:
            self._taken[length] += 1
            return self._beside(given)
        if length not in self._graphs:
            try:
                self._graphs[length] = self._recorded(given)
            except RuntimeError:
                self._graphs[length] = None
        recorded = self._graphs[length]
        if recorded is None:
            return self._steps(given)
        graph, inputs, results = recorded
        torch._foreach_copy_(inputs, list(given))
        graph.replay()
        return results

    def _beside(self, given: Sequence[Tensor]) -> list[Tensor]:
        """On the stream of the recording, as torch asks for before one."""
        current = torch.cuda.current_stream(self._stream.device)
        self._stream.wait_stream(current)
        with torch.cuda.stream(self._stream):
            results = self._steps(given)
        current.wait_stream(self._stream)
        return results

    def _recorded(self, given: Sequence[Tensor]) -> _Recording:
        """Records a block."""
        inputs = [value.clone() for value in given]
        memory = {value.untyped_storage().data_ptr() for value in inputs}
        graph = torch.cuda.CUDAGraph()
        # Other threads may use the GPU at the same time.
        with torch.cuda.graph(graph, stream=self._stream, capture_error_mode="thread_local"):
            # Not in the memory of an input, which the next replay overwrites.
            results = []
            for value in self._steps(inputs):
                shared = value.untyped_storage().data_ptr() in memory
                results.append(value.clone() if shared else value)
        return graph, inputs, results
