"""The state of a process that its next runs share, such as generators and streams, and a guard that restores it."""

from __future__ import annotations

import contextlib
import locale
import logging
import os
import random
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from msda_bench import streams

State: TypeAlias = dict[str, tuple[Callable[[], Any], Callable[[Any], object]]]
"""Parts of the state by name: how each is read, and written."""
_LIBRARIES = {"CUDA_MODULE_LOADING", "TORCHINDUCTOR_CACHE_DIR", "KMP_DUPLICATE_LIB_OK", "KMP_INIT_AT_FORK"}
"""Environment variables that torch and scikit-learn set when they are imported or first used."""


@contextlib.contextmanager
def restored(write: Callable[[str], object] | None = None) -> Iterator[list[str]]:
    """Restores what the block changes of the process that later runs share, even if it raises.

    Streams, signals and the like are restored in the main thread alone: elsewhere another thread may have changed them.
    Torch's state is restored if torch was imported before the block.

    Args:
        write: gets what the block writes to stdout and stderr; without it, the text goes where it went before.

    Yields:
        A list that is empty until the block ends, and then names what the block changed.
    """
    changed: list[str] = []
    alone = threading.current_thread() is threading.main_thread()
    state = number_state()
    if alone:
        state |= _SURROUNDINGS
    before = [read() for read, _ in state.values()]
    with streams.kept(changed, write) if alone else contextlib.nullcontext():
        try:
            yield changed
        finally:
            for (what, (read, put)), value in zip(state.items(), before, strict=True):
                if not _same(value, read()):
                    put(value)
                    changed.append(what)


def number_state() -> State:
    """What changes the numbers of later runs, torch's part if it is imported."""
    if "torch" not in sys.modules:
        return {**_STATE}
    from msda_bench.plugins.torch_state import TORCH_STATE

    return {**TORCH_STATE, **_STATE}


def _same(before: Any, after: Any) -> bool:
    # Comparing tuples of arrays with == is ambiguous, so numpy's state is compared item by item.
    if hasattr(before, "equal"):  # a tensor
        return bool(before.equal(after))
    if isinstance(before, tuple) and any(isinstance(item, np.ndarray) for item in before):
        return all(np.array_equal(item, other) for item, other in zip(before, after, strict=True))
    return bool(before == after)


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


_STATE: State = {
    "numpy's global random generator": (np.random.get_state, np.random.set_state),
    "Python's global random generator": (random.getstate, random.setstate),
    "numpy's error handling": (np.geterr, lambda kept: np.seterr(**kept)),
    "the environment's variables": (_environment, _set_environment),
    "the working folder": (_folder, _set_folder),
}
"""What changes the numbers of later runs apart from torch's."""
_SURROUNDINGS: State = {
    "the warnings' filters": (_warnings, _set_warnings),
    "the root logger": (_logging, _set_logging),
    "the signal handlers": (_handlers, _set_handlers),
    "the locale": (lambda: locale.setlocale(locale.LC_ALL), lambda kept: locale.setlocale(locale.LC_ALL, kept)),
    "the umask": (_umask, os.umask),
}
"""What changes how later runs are shown, stopped or written."""
