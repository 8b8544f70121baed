"""What the machine gives a run: compiled loops, and the device and versions that its record names."""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import platform
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from msda_bench import __version__
from msda_bench.api import Dropout
from msda_bench.plugins import Registry
from msda_bench.suite.cell import Cell


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
        from msda_bench.engine.compiled import compiled_dropout

        for layer in modules.modules():
            if isinstance(layer, Dropout):
                layer.drop = compiled_dropout


def provenance(device: torch.device, distributions: dict[str, str], stack: int) -> dict[str, Any]:
    """Versions, device and (padded) stack size; without numba's version the plain loops were used."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else processor()
    return {
        "msda_bench": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "platform": platform.platform(),
        "numba": importlib.metadata.version("numba") if compiles_for(device) else None,
        "distributions": distributions,
        "device": device.type,
        "device_name": name,
        "stack": stack,
    }


@functools.cache
def processor() -> str:
    """The model of the CPU, on which the last bits of a result depend; its architecture where the model is unknown."""
    about = Path("/proc/cpuinfo")
    lines = about.read_text(encoding="utf-8").splitlines() if about.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.processor() or platform.machine()


def distributions(cell: Cell, registry: Registry) -> dict[str, str]:
    """The versions of the distributions that the cell's components come from, by distribution."""
    entries = [registry.entry(ref.kind, ref.name) for ref in cell.refs]
    return dict(sorted({entry.distribution: entry.distribution_version for entry in entries}.items()))
