"""A worker process of the local executor: gets jobs through a pipe, trains, publishes, and tells."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
import threading
import traceback
from dataclasses import dataclass
from multiprocessing import parent_process
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, TypeAlias

from msda_bench.errors import BenchError
from msda_bench.run.events import Event
from msda_bench.run.executors.memory import keep_freed_memory
from msda_bench.run.jobs import Job

_ONE_THREAD = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS")


@dataclass(frozen=True)
class Setup:
    """What a worker needs to begin.

    Attributes:
        trainer: see `load_trainer`.
        device: what it trains on.
        stack: how many cells may train as one; None for what the device holds.
        folder: the result folder.
    """

    trainer: str
    device: str
    stack: int | None
    folder: Path


@dataclass(frozen=True)
class Ready:
    """The worker waits for a job."""


@dataclass(frozen=True)
class Broken:
    """The worker cannot go on, and no other could.

    Attributes:
        error: what the user can mend; None for a bug.
        trace: the traceback.
    """

    error: BenchError | None
    trace: str


Message: TypeAlias = Ready | Broken | Event


def main(pipe: Connection[Message, Job], setup: Setup) -> None:
    """The life of a worker: `Ready`, then for each job its events and `Ready` again, until the pipe is closed."""
    _leave_the_terminal()
    _die_with_parent()
    try:
        _work(pipe, setup)
    except (EOFError, BrokenPipeError):  # the parent wants no more
        return
    except Exception as error:  # noqa: BLE001 - told to the parent, which raises it
        known = error if isinstance(error, BenchError) else None
        with contextlib.suppress(OSError):
            pipe.send(Broken(known, traceback.format_exc()))


def _work(pipe: Connection[Message, Job], setup: Setup) -> None:
    # One process a core with one thread each is fastest on small batches. Set before torch, which reads it once.
    os.environ.update(dict.fromkeys(_ONE_THREAD, "1"))
    keep_freed_memory()
    from msda_bench.run.execute import JobRunner
    from msda_bench.run.trainer import load_trainer
    from msda_bench.store.store import Store

    runner = JobRunner(load_trainer(setup.trainer, setup.device, setup.stack), Store(setup.folder))
    while True:
        pipe.send(Ready())
        for event in runner.run(pipe.recv()):
            pipe.send(event)


def _leave_the_terminal() -> None:
    """A group of its own: Ctrl-C is the parent's to handle, and the parent can end the worker with all its children."""
    os.dup2(2, 1)  # stdout is for the tables, whatever a component prints
    # Without a buffer, since a worker ends by being killed, which loses what is buffered.
    sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), errors="backslashreplace", write_through=True)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})  # blocked by the parent until here
    if os.getpgrp() != os.getpid():
        os.setpgid(0, 0)


def _die_with_parent() -> None:
    parent: Any = parent_process()
    threading.Thread(target=_watch, args=(parent.sentinel,), daemon=True).start()


def _watch(sentinel: int) -> None:
    wait([sentinel])  # returns when the parent ends, however it ends
    os.killpg(0, signal.SIGKILL)
