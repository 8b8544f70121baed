"""Replaces plain loops by compiled ones where numba is installed and a run trains on the CPU."""

from __future__ import annotations

import functools
import importlib

import torch
from torch import nn

from msda_bench.api import Dropout


@functools.cache
def can_compile() -> bool:
    """Whether numba is installed and can compile."""
    try:
        importlib.import_module("msda_bench.engine.kernels")
    except (ImportError, RuntimeError):  # RuntimeError: numba found no folder to cache in
        return False
    return True


def compiles_for(device: torch.device) -> bool:
    """Whether runs on this device train with the compiled loops."""
    return device.type == "cpu" and can_compile()


def accelerate(modules: nn.Module, device: torch.device) -> None:
    """Gives the dropout layers their compiled form; the optimisers choose theirs when they are built."""
    if compiles_for(device):
        from msda_bench.engine.compiled_dropout import compiled_dropout

        for layer in modules.modules():
            if isinstance(layer, Dropout):
                layer.drop = compiled_dropout
