"""A process for work that may crash or hang: an executor of loky with one process, so that a death costs one call."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from multiprocessing import Pipe, resource_tracker
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from loky import BrokenProcessPool, ProcessPoolExecutor
from loky.backend import resource_tracker as loky_tracker
from loky.backend.context import LokyContext
from loky.backend.process import LokyProcess

from msda_bench.errors import BenchError

__all__ = ["BrokenProcessPool", "Worker"]

T = TypeVar("T")

_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS")
KEPT_MEMORY: Mapping[str, str] = dict.fromkeys(("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"), str(1 << 30))
"""Makes glibc reuse freed memory: a training step frees and requests the same large arrays every time, and each fresh
mapping is zeroed page by page, which took a third of a convolutional step."""
_TOO_MANY = {errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE}
_SHARED = "it needs a /dev/shm that can be written and has space; mount one, or train with --executor inline"
_SAFE_PATH = "PYTHONSAFEPATH"
_ENVIRON = threading.Lock()
"""Held while the environment is changed, since the threads of a dask worker start processes at once."""
_ENVIRONMENT = {
    **KEPT_MEMORY,
    # One process a core with one thread each is fastest on small batches, and gives the same numbers on every machine.
    **dict.fromkeys(_THREADS, "1"),
    _SAFE_PATH: "1",  # loky starts a module with -m, which would look for the standard library in the working folder
    "LOKY_MAX_MEMORY_LEAK_SIZE": "1e18",  # training takes more memory than the first call; that is no leak
}


class Worker:
    """A process that runs one call at a time, started when it is needed.

    It has a process group of its own, ignores Ctrl-C, reads nothing, and prints to stderr, since stdout is for tables.
    It ends, with every process that it started, when this process does, for any reason.

    Args:
        env: environment variables, set before it starts and so before torch reads them.
        patience: seconds after which it ends if idle; None for never.
    """

    def __init__(self, env: Mapping[str, str] | None = None, patience: float | None = None) -> None:
        self._env = {**_ENVIRONMENT, **(env or {})}
        self._patience = patience
        self._pool: ProcessPoolExecutor | None = None
        self._process: LokyProcess | None = None

    def submit(self, call: Callable[..., T], *args: object) -> Future[T]:
        """Starts a call; its future raises BrokenProcessPool if the process dies, which then needs `kill`.

        Raises:
            BenchError: the system cannot start a process.
        """
        _start_trackers()  # now, since they unblock signals when they start
        former = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # a new process inherits this
        try:
            if self._pool is None:
                self._pool = self._new_pool()
            future: Future[T] = self._pool.submit(call, *args)
        except OSError as error:
            remedy = "free memory or use fewer --workers" if error.errno in _TOO_MANY else _SHARED
            raise BenchError(f"a worker process cannot be started: {error.strerror}; {remedy}") from error
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, former)
        return future

    @property
    def alive(self) -> bool:
        """Whether the process runs; loky itself does not notice a death while a forked child holds its pipes."""
        return self._process is not None and self._process.is_alive()

    def kill(self) -> None:
        """Ends the process, with every process that it started; the next call starts another."""
        pool = self._pool
        self._pool = None
        if pool is None:
            return
        if self._process is not None and self._process.pid is not None:  # it was started
            with contextlib.suppress(ProcessLookupError, PermissionError):  # none is left, or it is not yet a group
                os.killpg(self._process.pid, signal.SIGKILL)
        pool.shutdown(kill_workers=True)
        for end in self._life:
            end.close()

    def end(self) -> str:
        """How the process ended, in words that follow a subject; to be called after `kill`."""
        code = None if self._process is None else self._process.exitcode
        if code is None or code >= 0:
            return f"exited with code {code}"
        hint = ", as the system does when memory runs out" if -code == signal.SIGKILL else ""
        name = {one.value: one.name for one in signal.Signals}.get(-code, f"signal {-code}")
        return f"was killed by {name}{hint}"

    def _new_pool(self) -> ProcessPoolExecutor:
        self._life = Pipe(duplex=False)  # the second end closes when this process ends, for any reason
        context = LokyContext()
        context.Process = self._new_process
        return ProcessPoolExecutor(
            1, timeout=self._patience, context=context, initializer=_begin, initargs=self._life[:1], env=self._env
        )

    def _new_process(self, **options: Any) -> LokyProcess:
        self._process = LokyProcess(**options)
        return self._process


def _start_trackers() -> None:
    """Starts the processes that clean up after both libraries, which must not import from the working folder, either.

    Worker processes inherit them.
    """
    with _ENVIRON:
        former = os.environ.get(_SAFE_PATH)
        os.environ[_SAFE_PATH] = "1"
        try:
            for tracker in (resource_tracker, loky_tracker):
                tracker.ensure_running()
        finally:
            os.environ.pop(_SAFE_PATH)
            if former is not None:
                os.environ[_SAFE_PATH] = former


def _begin(life: Connection[Any, Any]) -> None:
    """Prepares a new worker process; `life` closes when its parent ends."""
    os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    os.environ.pop(_SAFE_PATH, None)  # it was for the start of this process, not for what a component starts
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    # Unbuffered, since a worker ends by being killed, which loses buffered output.
    sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), errors="backslashreplace", write_through=True)
    threading.Thread(target=_end_with_parent, args=(life,), daemon=True).start()
    if hasattr(fcntl, "F_SETSIG"):  # Linux: the kernel does it, even if a component blocks all threads
        handle = life.fileno()
        fcntl.fcntl(handle, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(handle, fcntl.F_SETOWN, -os.getpgrp())
        fcntl.fcntl(handle, fcntl.F_SETFL, fcntl.fcntl(handle, fcntl.F_GETFL) | os.O_ASYNC)


def _end_with_parent(life: Connection[Any, Any]) -> None:
    with contextlib.suppress(EOFError, OSError):
        life.recv_bytes()
    os.killpg(0, signal.SIGKILL)
