"""What the measurements were made on and with, in a line."""

from __future__ import annotations

import importlib.metadata
import os
import platform

import torch

from msda_bench import __version__
from msda_bench.engine.machine import processor


def machine(device: str) -> str:
    """Processor, cores, memory and versions, and where training was measured."""
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("torch", "numba", "numpy"))
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"Measured on: {processor()}, {os.cpu_count()} logical cores, {memory:.0f} GiB of memory, "
        f"{platform.system()}; Python {platform.python_version()}, {versions}, msda-bench {__version__}. "
        f"{_where(device)}"
    )


def _where(device: str) -> str:
    if device == "cpu":
        return "On the CPU, one process with one thread unless the row says otherwise; nothing on a GPU."
    return f"Training on one {torch.cuda.get_device_name()}."
