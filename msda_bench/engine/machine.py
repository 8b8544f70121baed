"""What a run uses of the machine: compiled loops, the device, and the versions that its record names."""

from __future__ import annotations

import functools
import importlib
import platform
from importlib.metadata import version as _version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from msda_bench import __version__
from msda_bench.api import Dropout
from msda_bench.plugins import Registry
from msda_bench.suite.run_spec import RunSpec

CUDA_ENGINE = 2
"""Raised when numbers of a GPU change; it is in their records alone, since a key knows no device."""


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


def accelerate(modules: nn.Module, device: torch.device, *, stacked: bool = False) -> None:
    """Gives the dropout layers their compiled form; the optimisers choose theirs when they are built."""
    if compiles_for(device) and not stacked:
        from msda_bench.engine.compiled import compiled_dropout as drop
    elif fuses_for(device):
        from msda_bench.engine.fused import fused_dropout as drop
    else:
        return
    for layer in modules.modules():
        if isinstance(layer, Dropout):
            layer.drop = drop


def provenance(
    device: torch.device,
    cell: RunSpec,
    registry: Registry,
    stack: int,
) -> dict[str, Any]:
    """Versions, also of the distributions of the cell's components, device and stack size; of a GPU also its engine.

    Without numba's version the plain loops were used, on a GPU without Triton's torch's own Adadelta.
    """
    on_gpu = device.type == "cuda"
    entries = [registry.entry(ref.kind, ref.name) for ref in cell.components]
    found: dict[str, Any] = {
        "msda_bench": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "platform": platform.platform(),
        "numba": _version("numba") if compiles_for(device) else None,
        "distributions": {entry.distribution: entry.distribution_version for entry in entries},
        "device": device.type,
        "device_name": torch.cuda.get_device_name(device) if on_gpu else processor(),
        "stack": stack,
    }
    if on_gpu:
        found["engine"] = CUDA_ENGINE
        found["triton"] = _version("triton") if fuses_for(device) else None
    return found


def records_updates(device: torch.device) -> bool:
    """Whether CUDA graphs may hold updates, so that optimisers keep what changes from step to step in tensors."""
    return device.type == "cuda"


@functools.cache
def fuses_for(device: torch.device) -> bool:
    """Whether runs on this device train with the one-pass Adadelta of a GPU.

    It needs Triton, which may need a C compiler.
    """
    if not records_updates(device):
        return False
    try:
        fused = importlib.import_module("msda_bench.engine.fused")
        weight = torch.zeros(1, device=device)
        weight.grad = torch.ones_like(weight)
        fused.FusedAdadelta([weight], {"lr": 1.0, "rho": 0.9, "eps": 1e-6}).step()
    except Exception:  # noqa: BLE001 - Triton and what it calls fail in many ways
        return False
    return True


@functools.cache
def processor() -> str:
    """The model of the CPU, on which the last bits of a result depend; its architecture where the model is unknown."""
    about = Path("/proc/cpuinfo")
    lines = about.read_text(encoding="utf-8").splitlines() if about.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.processor() or platform.machine()
