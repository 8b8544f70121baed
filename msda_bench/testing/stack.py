"""Runs stacked into one tensor program, as the engine does on a GPU."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from msda_bench.errors import message_of

_T = TypeVar("_T")

RUNS = 3
"""Runs in a stack under test."""


def stacked(who: str, function: Callable[..., _T], *inputs: Any) -> _T:
    """The function of each run's inputs, all runs at once; inputs and results have a leading axis of runs.

    Raises:
        AssertionError: it cannot be stacked, although its component does not say so.
    """
    try:
        return torch.func.vmap(function)(*inputs)
    except RuntimeError as error:
        raise AssertionError(
            f"{who} cannot be stacked with other runs: {message_of(error, 300)}. The contract asks for "
            "no Python branch on tensor values, no .item(), no boolean indexing; one that must says `stackable = False`"
        ) from error


def stacked_modules(who: str, modules: Sequence[nn.Module], *inputs: Any) -> Tensor:
    """The output of each run's module for its inputs, all runs at once."""
    parameters, buffers = torch.func.stack_module_state(list(modules))
    skeleton = copy.deepcopy(modules[0])

    def call(parameters: dict[str, Tensor], buffers: dict[str, Tensor], *inputs: Any) -> Tensor:
        output: Tensor = torch.func.functional_call(skeleton, (parameters, buffers), inputs)
        return output

    return stacked(who, call, parameters, buffers, *inputs)
