"""A worker process: receives jobs through a pipe, trains, publishes, and reports."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import io
import os
import signal
import sys
import threading
import traceback
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TypeAlias

from msda_bench.blame import broken_package
from msda_bench.errors import BenchError
from msda_bench.running.events import Event
from msda_bench.running.jobs import Job

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""glibc's constants for mallopt."""
_KEEP = 1 << 30


@dataclass(frozen=True)
class Setup:
    """The configuration of a worker: see `Executor`.

    Attributes:
        folder: the result folder.
        patience: seconds after which it ends if idle; None for as long as its parent lives.
    """

    trainer: str
    device: str
    stack: int | None
    folder: Path
    patience: float | None = None


@dataclass(frozen=True)
class Ready:
    """The worker waits for a job."""


@dataclass(frozen=True)
class Broken:
    """The worker cannot continue, and no other could; `error` is what the user can fix, None for a bug."""

    error: BenchError | None
    trace: str


Message: TypeAlias = Ready | Broken | Event


def main(pipe: int, life: int) -> None:
    """The main loop of a worker: `Ready`, then for each job its events and `Ready` again, until the pipe closes.

    Args:
        pipe: file descriptor of a `Connection` that brings a `Setup`, then jobs, and takes messages.
        life: file descriptor that closes when the parent ends.
    """
    for handle in (pipe, life):
        fcntl.fcntl(handle, fcntl.F_SETFD, fcntl.FD_CLOEXEC)  # a child's copy would hide that this process is gone
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Unbuffered, since a worker ends by being killed, which loses buffered output.
    sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), errors="backslashreplace", write_through=True)
    _die_with_parent(life)
    parent: Connection[Message, Setup | Job] = Connection(pipe)
    with parent:
        _serve(parent)
    os.killpg(0, signal.SIGKILL)  # with every process that a component started


def _serve(parent: Connection[Message, Setup | Job]) -> None:
    try:
        setup = parent.recv()
        if isinstance(setup, Setup):
            _work(parent, setup)
    except (EOFError, BrokenPipeError):  # the parent closed the pipe
        return
    except BaseException as error:  # noqa: BLE001 - sent to the parent, which raises it
        known = error if isinstance(error, BenchError) else broken_package(error)
        with contextlib.suppress(OSError):
            parent.send(Broken(known, traceback.format_exc()))


def _work(parent: Connection[Message, Setup | Job], setup: Setup) -> None:
    keep_freed_memory()
    from msda_bench.running.execute import JobRunner, load_trainer
    from msda_bench.store.store import Store

    runner = JobRunner(load_trainer(setup.trainer, setup.device, setup.stack), Store(setup.folder))
    while True:
        parent.send(Ready())
        if not parent.poll(setup.patience):
            return
        job = parent.recv()
        if isinstance(job, Job):
            for event in runner.run(job):
                parent.send(event)


def keep_freed_memory() -> None:
    """Makes glibc reuse freed memory rather than return it and map it again.

    A training step frees and requests the same large arrays every time; each fresh mapping is zeroed page by page,
    which took a third of a convolutional step. Without glibc this does nothing.
    """
    with contextlib.suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None)
        libc.mallopt(_MMAP_THRESHOLD, _KEEP)
        libc.mallopt(_TRIM_THRESHOLD, _KEEP)


def _die_with_parent(life: int) -> None:
    threading.Thread(target=_watch, args=(life,), daemon=True).start()
    if hasattr(fcntl, "F_SETSIG"):  # Linux: the kernel does it, even if a component blocks all threads
        fcntl.fcntl(life, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(life, fcntl.F_SETOWN, -os.getpgrp())
        fcntl.fcntl(life, fcntl.F_SETFL, fcntl.fcntl(life, fcntl.F_GETFL) | os.O_ASYNC)


def _watch(life: int) -> None:
    os.read(life, 1)  # returns when the parent ends, for any reason
    os.killpg(0, signal.SIGKILL)
