"""The state of a process that its next runs share, such as generators and streams, and a guard that restores it."""

from __future__ import annotations

import contextlib
import locale
import logging
import os
import random
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from msda_bench import streams

_LIBRARIES = {"CUDA_MODULE_LOADING", "TORCHINDUCTOR_CACHE_DIR", "KMP_DUPLICATE_LIB_OK", "KMP_INIT_AT_FORK"}
"""Environment variables that torch and scikit-learn set when they are imported or first used."""
_DEVICES = ("cpu", "cuda")


@contextlib.contextmanager
def restored(write: Callable[[str], object] | None = None) -> Iterator[list[str]]:
    """Restores what the block changes of the process that later runs share, even if it raises.

    Streams, signals and the like are restored in the main thread alone: elsewhere another thread may have changed them.

    Args:
        write: gets what the block writes to stdout and stderr; without it, the text goes where it went before.

    Yields:
        A list that is empty until the block ends, and then names what the block changed.
    """
    changed: list[str] = []
    alone = threading.current_thread() is threading.main_thread()
    state = _STATE | _SURROUNDINGS if alone else _STATE
    before = [read() for read, _ in state.values()]
    with streams.kept(changed, write) if alone else contextlib.nullcontext():
        try:
            yield changed
        finally:
            for (what, (read, put)), value in zip(state.items(), before, strict=True):
                if not _same(value, read()):
                    put(value)
                    changed.append(what)


@contextlib.contextmanager
def neutral() -> Iterator[None]:
    """Within the block the process computes as after its start, whatever its caller has set.

    That is with gradients, in float32, on the CPU, without autocast and anomaly detection, and with a warning where
    NumPy divides by zero.
    """
    dtype, autocast = torch.get_default_dtype(), [torch.is_autocast_enabled(device) for device in _DEVICES]
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


@dataclass(frozen=True)
class _Warnings:
    """How warnings are shown. Only what concerns the warnings of every library is compared.

    A library adds filters for its own warnings when it is imported.
    """

    filters: Any = field(compare=False)
    entries: tuple[Any, ...] = field(compare=False)
    general: tuple[Any, ...]
    show: Any


def _warnings() -> _Warnings:
    entries = tuple(warnings.filters)
    general = []
    for entry in entries:
        _, message, category, module, _ = entry
        if message is None and module is None and getattr(category, "__module__", "") == "builtins":
            general.append(entry)
    return _Warnings(warnings.filters, entries, tuple(general), warnings.showwarning)


def _set_warnings(kept: _Warnings) -> None:
    warnings.filters = kept.filters
    warnings.resetwarnings()  # empties the list, and makes Python forget what it has shown
    kept.filters[:] = kept.entries
    warnings.showwarning = kept.show


def _handlers() -> dict[int, Any]:
    return {number: signal.getsignal(number) for number in signal.valid_signals()}


def _set_handlers(kept: dict[int, Any]) -> None:
    for number, handler in kept.items():
        if handler is not None and signal.getsignal(number) != handler:  # None: not set by Python
            signal.signal(number, handler)


def _logging() -> tuple[list[logging.Handler], int, int]:
    return [*logging.root.handlers], logging.root.level, logging.root.manager.disable


def _set_logging(kept: tuple[list[logging.Handler], int, int]) -> None:
    logging.root.handlers[:], level, disabled = kept
    logging.root.setLevel(level)
    logging.disable(disabled)


def _umask() -> int:
    mask = os.umask(0o077)  # it cannot be read without being set; this one exposes no file of another thread
    os.umask(mask)
    return mask


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
"""What changes the numbers of later runs: how each is read, and written."""
_SURROUNDINGS: dict[str, tuple[Callable[[], Any], Callable[[Any], object]]] = {
    "the warnings' filters": (_warnings, _set_warnings),
    "the root logger": (_logging, _set_logging),
    "the signal handlers": (_handlers, _set_handlers),
    "the locale": (lambda: locale.setlocale(locale.LC_ALL), lambda kept: locale.setlocale(locale.LC_ALL, kept)),
    "the umask": (_umask, os.umask),
}
"""What changes how later runs are shown, stopped or written."""
