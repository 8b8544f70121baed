"""The state of a process that changes the numbers of its next runs, and a guard that restores it."""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

_LIBRARIES = {"CUDA_MODULE_LOADING", "TORCHINDUCTOR_CACHE_DIR", "KMP_DUPLICATE_LIB_OK", "KMP_INIT_AT_FORK"}
"""Environment variables that torch and scikit-learn set when they are imported or first used."""
_DEVICES = ("cpu", "cuda")


@contextlib.contextmanager
def restored() -> Iterator[list[str]]:
    """Restores what the block changes of the process that would change the numbers of later runs, even if it raises.

    Yields:
        A list that is empty until the block ends, and then names what the block changed.
    """
    before = [read() for read, _ in _STATE.values()]
    changed: list[str] = []
    try:
        yield changed
    finally:
        for (what, (read, write)), value in zip(_STATE.items(), before, strict=True):
            if not _same(value, read()):
                write(value)
                changed.append(what)


def _same(before: Any, after: Any) -> bool:
    # Comparing tuples of arrays with == is ambiguous, so numpy's state is compared item by item.
    if isinstance(before, torch.Tensor):
        return torch.equal(before, after)
    if isinstance(before, tuple) and any(isinstance(item, np.ndarray) for item in before):
        return all(np.array_equal(item, other) for item, other in zip(before, after, strict=True))
    return bool(before == after)


def _set_default_device(device: torch.device) -> None:
    # Setting the CPU would leave a mode active that slows every torch call; None is the initial state.
    torch.set_default_device(None if device.type == "cpu" else device)


def _set_autocast(enabled: list[bool]) -> None:
    for device, value in zip(_DEVICES, enabled, strict=True):
        torch.set_autocast_enabled(device, value)


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in _LIBRARIES}


def _set_environment(variables: dict[str, str]) -> None:
    for name in _environment().keys() - variables.keys():
        del os.environ[name]
    os.environ.update(variables)


def _folder() -> str | None:
    with contextlib.suppress(OSError):  # the folder was removed
        return os.getcwd()  # noqa: PTH109 - only passed back to os.chdir
    return None


def _set_folder(folder: str | None) -> None:
    if folder is not None:
        with contextlib.suppress(OSError):
            os.chdir(folder)


_STATE: dict[str, tuple[Callable[[], Any], Callable[[Any], object]]] = {
    "torch's default device": (torch.get_default_device, _set_default_device),
    "torch's global random generator": (torch.get_rng_state, torch.set_rng_state),
    "numpy's global random generator": (np.random.get_state, np.random.set_state),
    "Python's global random generator": (random.getstate, random.setstate),
    "torch's default dtype": (torch.get_default_dtype, torch.set_default_dtype),
    "torch's number of threads": (torch.get_num_threads, torch.set_num_threads),
    "torch's gradient mode": (torch.is_grad_enabled, torch.set_grad_enabled),
    "torch's deterministic mode": (torch.get_deterministic_debug_mode, torch.set_deterministic_debug_mode),
    "torch's float32 matmul precision": (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
    "torch's autocast": (lambda: [torch.is_autocast_enabled(device) for device in _DEVICES], _set_autocast),
    "numpy's error handling": (np.geterr, lambda kept: np.seterr(**kept)),
    "the environment's variables": (_environment, _set_environment),
    "the working folder": (_folder, _set_folder),
}
"""What restores each: how it is read, and written."""
