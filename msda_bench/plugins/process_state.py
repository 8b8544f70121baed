"""The state that all runs of a process share, and a guard that restores it after a component's code."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, cast

import numpy as np
import torch

_LIBRARIES = {"CUDA_MODULE_LOADING", "TORCHINDUCTOR_CACHE_DIR", "KMP_DUPLICATE_LIB_OK", "KMP_INIT_AT_FORK"}
"""Environment variables that torch and scikit-learn set when they are imported or first used."""


class _Setting(NamedTuple):
    what: str
    read: Callable[[], Any]
    write: Callable[[Any], object]


@contextlib.contextmanager
def put_back() -> Iterator[list[str]]:
    """Restores whatever the block changes in the state that all runs of a process share, even if it raises.

    Yields:
        A list that is empty until the block ends, and then names what the block changed.
    """
    before = [setting.read() for setting in _SETTINGS]
    changed: list[str] = []
    try:
        yield changed
    finally:
        for setting, value in zip(_SETTINGS, before, strict=True):
            if not _same(value, setting.read()):
                setting.write(value)
                changed.append(setting.what)


def _same(before: Any, after: Any) -> bool:
    # Comparing tuples of arrays with == is ambiguous, so numpy's state is compared item by item.
    if isinstance(before, torch.Tensor):
        return torch.equal(before, after)
    if isinstance(before, tuple) and any(isinstance(item, np.ndarray) for item in before):
        return all(np.array_equal(one, other) for one, other in zip(before, after, strict=True))
    return bool(before == after)


def _set_default_device(device: torch.device) -> None:
    # Setting the CPU would leave a mode active that slows every torch call; None is the initial state.
    torch.set_default_device(None if device.type == "cpu" else device)


def _autocast() -> tuple[bool, ...]:
    return tuple(torch.is_autocast_enabled(kind) for kind in ("cpu", "cuda"))


def _set_autocast(enabled: tuple[bool, ...]) -> None:
    for kind, value in zip(("cpu", "cuda"), enabled, strict=True):
        torch.set_autocast_enabled(kind, value)


def _filters() -> list[Any]:
    """The warning filters that affect all code; libraries add narrower ones when they are imported."""
    return [
        (action, message, category, module, line)
        for action, message, category, module, line in warnings.filters
        # A category may also be a tuple of categories, as in scikit-learn's filters.
        if message is None and module is None and getattr(category, "__module__", None) == "builtins"
    ]


def _set_filters(filters: list[Any]) -> None:
    common = _filters()
    own = [one for one in warnings.filters if one not in common]
    cast("list[Any]", warnings.filters)[:] = [*filters, *own]


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in _LIBRARIES}


def _set_environment(variables: dict[str, str]) -> None:
    for name in _environment().keys() - variables.keys():
        del os.environ[name]
    os.environ.update(variables)


def _folder() -> str | None:
    try:
        return os.getcwd()  # noqa: PTH109 - only passed back to os.chdir
    except OSError:  # the folder was removed
        return None


def _set_folder(folder: str | None) -> None:
    if folder is not None:
        with contextlib.suppress(OSError):
            os.chdir(folder)


def _handlers() -> dict[int, Any]:
    return {number: signal.getsignal(number) for number in signal.valid_signals()}


def _set_handlers(handlers: dict[int, Any]) -> None:
    if threading.current_thread() is not threading.main_thread():
        return  # no component can set a handler here, either
    for number, handler in handlers.items():
        if handler is not None and signal.getsignal(number) != handler:
            signal.signal(number, handler)


def _streams() -> tuple[Any, Any]:
    return sys.stdout, sys.stderr


def _set_streams(streams: tuple[Any, Any]) -> None:
    sys.stdout, sys.stderr = streams


_SETTINGS = (
    _Setting("torch's default device", torch.get_default_device, _set_default_device),
    _Setting("torch's global random generator", torch.get_rng_state, torch.set_rng_state),
    _Setting("numpy's global random generator", np.random.get_state, np.random.set_state),
    _Setting("Python's global random generator", random.getstate, random.setstate),
    _Setting("torch's default dtype", torch.get_default_dtype, torch.set_default_dtype),
    _Setting("torch's number of threads", torch.get_num_threads, torch.set_num_threads),
    _Setting("torch's gradient mode", torch.is_grad_enabled, torch.set_grad_enabled),
    _Setting(
        "torch's deterministic mode",
        torch.get_deterministic_debug_mode,
        torch.set_deterministic_debug_mode,
    ),
    _Setting(
        "torch's float32 matmul precision",
        torch.get_float32_matmul_precision,
        torch.set_float32_matmul_precision,
    ),
    _Setting("torch's autocast", _autocast, _set_autocast),
    _Setting("numpy's error handling", np.geterr, lambda kept: np.seterr(**kept)),
    _Setting("Python's warning filters", _filters, _set_filters),
    _Setting("the environment's variables", _environment, _set_environment),
    _Setting("the working folder", _folder, _set_folder),
    _Setting("the signal handlers", _handlers, _set_handlers),
    _Setting("the standard streams", _streams, _set_streams),
)
