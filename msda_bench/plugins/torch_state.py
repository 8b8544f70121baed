"""Torch's state that later runs of a process share, and a block in which it is as after torch's import."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import torch

if TYPE_CHECKING:
    from msda_bench.plugins.process_state import State

_DEVICES = ("cpu", "cuda")


@contextlib.contextmanager
def neutral() -> Iterator[None]:
    """Within the block the process computes as after its start, whatever its caller has set.

    That is with gradients, in float32, on the CPU, without autocast and anomaly detection, and with a warning where
    NumPy divides by zero.
    """
    dtype = torch.get_default_dtype()
    autocast = _autocast()
    elsewhere = torch.get_default_device().type != "cpu"
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.inference_mode(mode=False))  # turns gradients on, too
        stack.enter_context(np.errstate(divide="warn", over="warn", under="ignore", invalid="warn"))
        if elsewhere:
            stack.enter_context(torch.device("cpu"))
        if torch.is_anomaly_enabled():
            stack.enter_context(torch.autograd.set_detect_anomaly(mode=False))
        stack.callback(torch.set_default_dtype, dtype)
        stack.callback(_set_autocast, autocast)
        torch.set_default_dtype(torch.float32)
        _set_autocast([False for _ in _DEVICES])
        yield


def _set_default_device(device: torch.device) -> None:
    # Setting the CPU would leave a mode active that slows every torch call; None is the initial state.
    torch.set_default_device(None if device.type == "cpu" else device)


def _autocast() -> list[bool]:
    return [torch.is_autocast_enabled(device) for device in _DEVICES]


def _set_autocast(enabled: list[bool]) -> None:
    for device, value in zip(_DEVICES, enabled, strict=True):
        torch.set_autocast_enabled(device, value)


TORCH_STATE: State = {
    "torch's default device": (torch.get_default_device, _set_default_device),
    "torch's global random generator": (torch.get_rng_state, torch.set_rng_state),
    "torch's default dtype": (torch.get_default_dtype, torch.set_default_dtype),
    "torch's number of threads": (torch.get_num_threads, torch.set_num_threads),
    "torch's gradient mode": (torch.is_grad_enabled, torch.set_grad_enabled),
    "torch's deterministic mode": (torch.get_deterministic_debug_mode, torch.set_deterministic_debug_mode),
    "torch's float32 matmul precision": (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
    "torch's autocast": (_autocast, _set_autocast),
}
"""What changes the numbers of later runs."""
