"""Where and with what a run was trained; told in its record, no part of its result."""

from __future__ import annotations

import importlib.metadata
import platform
from typing import Any

import numpy as np
import torch

from msda_bench import __version__
from msda_bench.engine.accelerate import compiles_for


def provenance(device: torch.device) -> dict[str, Any]:
    """Versions, device and stack size; without numba's version the plain loops were used."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.processor() or platform.machine()
    return {
        "msda_bench": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "platform": platform.platform(),
        "numba": importlib.metadata.version("numba") if compiles_for(device) else None,
        "device": device.type,
        "device_name": name,
        "stack": 1,
    }
