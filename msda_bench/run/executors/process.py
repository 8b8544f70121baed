"""One worker process as its parent sees it.

The processes are run by hand because the pools at hand lose runs: a worker that exits with code 0 leaves pebble's pool
waiting for ever, and one that dies while it holds the queue's lock stops the others; one death breaks the whole of
concurrent.futures' pool. Here each worker has a pipe of its own, and nothing is shared.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection

from msda_bench.run.executors.worker import Message, Setup, main
from msda_bench.run.jobs import Job

_SIGNALS = {signal.SIGINT, signal.SIGTERM}


class WorkerProcess:
    """A worker: starting until its first `Ready`, then idle or busy with a job.

    Attributes:
        ready: whether it has got as far as its first `Ready`.
        job: what it is busy with.
        told: keys of the job's cells whose records it has told.
        began: when it got the job (`time.monotonic`).
    """

    def __init__(self, setup: Setup) -> None:
        self.ready = False
        self.job: Job | None = None
        self.told: set[str] = set()
        self.began = 0.0
        self._heard = True
        context = multiprocessing.get_context("spawn")  # a fork would copy torch's threads and CUDA's state
        self._pipe: Connection[Job, Message]
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=main, args=(theirs, setup), name="msda-bench worker")
        former = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # until the worker has said what it does on Ctrl-C
        try:
            self._process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, former)
            theirs.close()

    @property
    def waitables(self) -> tuple[Connection[Job, Message], int]:
        """What becomes ready when it tells something or ends."""
        return self._pipe, self._process.sentinel

    @property
    def seconds(self) -> float:
        """How long it has been busy with its job."""
        return time.monotonic() - self.began

    def is_alive(self) -> bool:
        """Whether the process is there and can be heard."""
        return self._heard and self._process.is_alive()

    @property
    def idle(self) -> bool:
        """Whether it waits for a job."""
        return self.ready and self.job is None

    def rest(self) -> None:
        """Notes that it waits for a job."""
        self.ready, self.job = True, None

    def give(self, job: Job) -> None:
        """Hands it a job; if it has just died that shows later."""
        self.job, self.told, self.began = job, set(), time.monotonic()
        with contextlib.suppress(OSError):
            self._pipe.send(job)

    def messages(self) -> Iterator[Message]:
        """What it has told since; ends at a message that it died over."""
        try:
            while self._pipe.poll():
                yield self._pipe.recv()
        except (EOFError, OSError, pickle.UnpicklingError):
            self._heard = False

    def kill(self) -> None:
        """Ends it, with every process that it started."""
        if self._process.pid is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()  # in case it had no group of its own yet
        self._process.join()
        self._pipe.close()

    def end(self) -> str:
        """How it ended, in words, with the process as the subject; to be asked after `kill`."""
        code = self._process.exitcode
        if code is None or code >= 0:
            return f"exited with code {code}"
        hint = ", as the system does when memory runs out" if -code == signal.SIGKILL else ""
        return f"was killed by {_signal_name(-code)}{hint}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
